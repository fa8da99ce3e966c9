// SPDX-License-Identifier: Apache-2.0
#include "train/range_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "train/training_job.hpp"

namespace convoy {
namespace {

constexpr std::size_t fewest_points = 10;
constexpr Index progress_lines = 10;
/// A smoothed loss of so many times the least before it: training has become unstable.
constexpr double unstable = 1.25;
/// Standard errors of a slope. The steepest of all windows of losses without a descent is steeper in fewer than 2 of
/// 100 tests of 20 to 200 steps.
constexpr double certain = 3.5;

/// The straight line through some points that has the least squares of deviations.
struct LineFit {
  double mean_x = 0, mean_y = 0, slope = 0;
  double points = 0, squares = 0;  ///< squares: sum of (x - mean_x)^2
  double at(double x) const { return mean_y + slope * (x - mean_x); }
  /// The weight that the point at x has in at(x).
  double leverage(double x) const { return 1 / points + (x - mean_x) * (x - mean_x) / squares; }
};

/// Points of a window to each side of its middle.
std::size_t side_of(const std::vector<RangePoint>& points) { return std::max<std::size_t>(2, points.size() / 10); }

LineFit fit_around(const std::vector<RangePoint>& points, std::size_t at) {
  const std::size_t side = side_of(points);
  const std::size_t begin = at - std::min(at, side), end = std::min(points.size(), at + side + 1);
  const auto n = static_cast<double>(end - begin);
  LineFit fit{.points = n};
  for (std::size_t i = begin; i < end; ++i) {
    fit.mean_x += std::log10(points[i].rate) / n;
    fit.mean_y += points[i].loss / n;
  }
  double xx = 0, xy = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double x = std::log10(points[i].rate) - fit.mean_x;
    xx += x * x;
    xy += x * (points[i].loss - fit.mean_y);
  }
  fit.slope = xx > 0 ? xy / xx : 0;
  fit.squares = xx;
  return fit;
}

/// Standard deviation of a step's loss from the smooth curve, of the first `count` points.
double scatter_of(const std::vector<RangePoint>& points, std::size_t count) {
  double variance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = std::log10(points[i].rate);
    const LineFit fit = fit_around(points, i);
    const double residual = points[i].loss - fit.at(x);
    variance += residual * residual / (1 - fit.leverage(x)) / static_cast<double>(count);
  }
  return std::sqrt(variance);
}

std::vector<RangePoint> finite(std::vector<RangePoint> points) {
  std::erase_if(points, [](const RangePoint& point) { return !std::isfinite(point.loss); });
  return points;
}

}  // namespace

std::vector<double> smoothed_losses(const std::vector<RangePoint>& points) {
  std::vector<double> smoothed;
  for (std::size_t i = 0; i < points.size(); ++i)
    smoothed.push_back(fit_around(points, i).at(std::log10(points[i].rate)));
  return smoothed;
}

std::optional<RangeFinding> find_rate(const std::vector<RangePoint>& all) {
  const std::vector<RangePoint> points = finite(all);
  if (points.size() < fewest_points) return std::nullopt;
  const std::vector<double> smoothed = smoothed_losses(points);
  // Beyond the first rate at which the loss grows again, it jumps, and may fall below all that came before.
  std::size_t end = 0;
  double least = smoothed[0];
  for (; end < smoothed.size() && smoothed[end] <= unstable * least; ++end) least = std::min(least, smoothed[end]);
  const auto lowest = static_cast<std::size_t>(
      std::min_element(smoothed.begin(), smoothed.begin() + static_cast<std::ptrdiff_t>(end)) - smoothed.begin());
  const double scatter = scatter_of(points, end);
  /// The steepest descent of at least so many standard errors; none: `slope` is 0.
  struct Descent {
    std::size_t at = 0;
    double slope = 0;
  };
  const auto steepest_of = [&](double errors) {
    Descent found;
    for (std::size_t i = 0; i <= lowest; ++i) {
      const LineFit fit = fit_around(points, i);
      if (fit.slope >= found.slope || -fit.slope * std::sqrt(fit.squares) < errors * scatter) continue;
      found = {i, fit.slope};
    }
    return found;
  };
  if (steepest_of(0).slope == 0) return std::nullopt;
  const Descent steepest = steepest_of(certain);
  using Doubt = RangeFinding::Doubt;
  Doubt doubt = Doubt::none;
  if (steepest.slope == 0) {
    doubt = Doubt::scatter;
  } else if (steepest.at < side_of(points)) {
    doubt = Doubt::low_end;
  } else if (steepest.at + side_of(points) >= points.size()) {
    doubt = Doubt::high_end;
  }
  return RangeFinding{.doubt = doubt,
                      .steepest = points[steepest.at].rate,
                      .lowest_rate = points[lowest].rate,
                      .lowest_loss = smoothed[lowest]};
}

Exit RangeTest::run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& whole) {
  TrainConfig config = without_results(whole);
  // Long enough for all steps, also if an epoch is one.
  config.epochs = std::max(config.epochs, static_cast<double>(ramp_.steps));
  config.start_epoch = 0;
  config.skip_eval = true;
  config.ema.decay = 0;
  config.checkpoint.save = false;
  config.output.print_every = 1;
  config.output.trace = {};
  ScheduleSpec& schedule = config.optimiser.schedule;
  schedule.decay = Decay::constant;
  schedule.warmup_epochs = 0;
  for (PhaseConfig& phase : config.phases) phase.has_rate = false;
  std::erase_if(config.phases, [](const PhaseConfig& phase) { return !phase.changes_data(); });
  return run_trial(communicator, supervisor, config, *this);
}

void RangeTest::begin(TrainingJob& job) {
  job_ = &job;
  global_batch = job.shape.global_batch;
  ramp_.first = job.state.position.step;
  job.optimiser.ramp = ramp_;
  job.state.last_step = std::min(job.state.last_step, ramp_.first + ramp_.steps);
}

void RangeTest::step_done(LoopState& state) {
  // A sum over all ranks, so that all of them end at the same step.
  const double loss = job_->training_log.interval_loss();
  points.push_back({job_->optimiser.rate(state.working.step), loss});
  constexpr double keep = 0.9;
  const double weight = 1 - std::pow(keep, static_cast<double>(points.size()));
  mean_ = keep * mean_ + (1 - keep) * loss;
  const double running = mean_ / weight;
  if (points.size() == 1 || running < least_) least_ = running;
  diverged = !std::isfinite(loss) || running > divergence * least_;
  state.ends_early = state.ends_early || diverged;
  if (job_->shape.rank == 0 && !job_->config.output.quiet) tell_progress(points.back().rate, loss);
}

void RangeTest::tell_progress(double rate, double loss) const {
  const auto done = static_cast<Index>(points.size());
  const Index every = std::max<Index>(ramp_.steps / progress_lines, 1);
  if (done == 1 || done % every == 0 || done == ramp_.steps || diverged)
    fmt::print(stderr, "step {} of {}: learning rate {:.3g}, loss {:.4g}\n", done, ramp_.steps, rate, loss);
}

}  // namespace convoy
