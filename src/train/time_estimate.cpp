// SPDX-License-Identifier: Apache-2.0
#include "train/time_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/log.hpp"
#include "core/text.hpp"
#include "core/wall_clock.hpp"
#include "metrics/console.hpp"

namespace convoy {
namespace {

constexpr Index warm_up_steps = 2, wanted_steps = 10;
constexpr double least_seconds = 3;    // of those steps: other work on the machine comes and goes
constexpr double wanted_seconds = 10;  // fewer steps are enough where they are that long
constexpr Index window_steps = 200;    // of the moving average

double mean_with(double mean, double value, Index count) { return mean + (value - mean) / static_cast<double>(count); }

/// Ends of intervals of `every` epochs after step `from` up to `to`. 0: never.
double times_due(double every, Index from, Index to, const Timeline& timeline) {
  if (every <= 0) return 0;
  const auto count = [&](Index step) {
    constexpr double slack = 1e-9;
    return std::floor(timeline.epochs(step) / every + slack);
  };
  return std::max(0.0, count(to) - count(from));
}

double by_work(double seconds, double work, double measured_work) {
  return measured_work > 0 ? seconds * work / measured_work : seconds;
}

/// Seconds where minutes would say nothing.
std::string duration(double seconds) {
  return seconds < 100 ? fmt::format("{:.1f} s", seconds) : duration_text(seconds);
}

/// Multiply-adds of a validation's image, on average over the shapes.
double validation_macs(const Graph& graph, const TrainingPhase& phase) {
  double macs = 0, images = 0;
  for (const ShapeGroup& group : phase.val_groups) {
    const auto count = static_cast<double>(group.samples.size());
    macs += count * cost_of(graph, group.size.height, group.size.width).macs;
    images += count;
  }
  const AugmentSpec& augment = phase.evaluation.augment;
  return images > 0 ? macs / images : cost_of(graph, augment.height, augment.width).macs;
}

}  // namespace

WorkAhead work_ahead(const TrainConfig& config, const Graph& graph, const std::vector<TrainingPhase>& phases,
                     const Position& position) {
  const JobShape& job = phases.front().job;
  WorkAhead ahead{.timeline = job.timeline,
                  .phases = {},
                  .first_step = position.step,
                  .last_step = job.total_steps,
                  .val_interval = config.val_interval,
                  .save_interval = config.checkpoint.save ? config.checkpoint.save_every : 0};
  for (const TrainingPhase& phase : phases) {
    PhaseWork work{.begin_epoch = phase.begin_epoch,
                   .train_images = static_cast<double>(phase.job.global_batch),
                   .train_work = cost_of(graph, phase.augment.height, phase.augment.width).training_flops};
    if (phase.splits.has_val) {
      Index images = phase.splits.val.samples;
      if (config.data.limit_val_batches > 0)
        images = std::min(images, config.data.limit_val_batches * config.eval_batch * job.ranks);
      work.val_images = static_cast<double>(images);
      work.val_work = 2 * validation_macs(graph, phase);
    }
    ahead.phases.push_back(work);
  }
  return ahead;
}

TimeEstimate::TimeEstimate(const WorkAhead& work, const JobLimit& limit)
    : work_(work), limit_(limit), start_up_(wall_seconds() - limit.began), measured_(work.phases.size()) {
  phase_ = work.phase(std::max<Index>(work.first_step - 1, 0));
  // The first whole epoch of this job, and a step for what follows its end.
  const auto epoch = static_cast<Index>(std::ceil(work.timeline.epochs(work.first_step)));
  tell_again_at_ = work.timeline.first_step(epoch + 1) + 1;
}

void TimeEstimate::step_took(double seconds, Index step) {
  phase_ = work_.phase(step - 1);
  Measured& measured = measured_[phase_];
  if (++measured.steps <= warm_up_steps) {
    measured.warm_up_step = mean_with(measured.warm_up_step, seconds, measured.steps);
  } else {
    measured.step = mean_with(measured.step, seconds, std::min(measured.steps - warm_up_steps, window_steps));
    measured.counted += seconds;
  }
  const bool first = !told_ && is_ready() && step < work_.last_step;
  const bool again = step == tell_again_at_;
  if (again) {
    const std::size_t next = phase_ + 1;
    tell_again_at_ =
        next < work_.phases.size() ? work_.timeline.first_step(work_.phases[next].begin_epoch + 1) + 1 : -1;
  }
  if (first || (again && told_)) tell(step);
}

void TimeEstimate::validation_done(double seconds, Index images) {
  const double whole = work_.phases[phase_].val_images, part = static_cast<double>(images);
  Measured& measured = measured_[phase_];
  ++measured.validations;
  measured.validation =
      mean_with(measured.validation, part > 0 && part < whole ? seconds * whole / part : seconds, measured.validations);
}

void TimeEstimate::save_done(double seconds) { save_ = mean_with(save_, seconds, ++saves_); }

bool TimeEstimate::is_ready() const {
  const Measured& measured = measured_[phase_];
  const Index counted = measured.steps - warm_up_steps;
  return (counted >= wanted_steps && measured.counted >= least_seconds) ||
         (counted >= 1 && measured.counted >= wanted_seconds);
}

template <class Has>
std::size_t TimeEstimate::nearest(std::size_t phase, const Has& has) const {
  const std::size_t phases = measured_.size();
  for (std::size_t away = 0; away < phases; ++away) {
    if (phase >= away && has(measured_[phase - away])) return phase - away;
    if (phase + away < phases && has(measured_[phase + away])) return phase + away;
  }
  return phases;
}

double TimeEstimate::step_seconds(std::size_t phase) const {
  if (const std::size_t from = nearest(phase, [](const Measured& m) { return m.steps > warm_up_steps; });
      from < measured_.size())
    return by_work(measured_[from].step, step_work(phase), step_work(from));
  const std::size_t from = nearest(phase, [](const Measured& m) { return m.steps > 0; });
  if (from == measured_.size()) return 0;
  return by_work(measured_[from].warm_up_step, step_work(phase), step_work(from));
}

double TimeEstimate::validation_seconds(std::size_t phase) const {
  if (work_.phases[phase].val_images <= 0) return 0;
  const std::size_t from = nearest(phase, [](const Measured& m) { return m.validations > 0; });
  if (from < measured_.size()) return by_work(measured_[from].validation, val_work(phase), val_work(from));
  // Nothing is summed over the ranks: a validation is its share of a step's operations.
  return step_work(phase) > 0 ? step_seconds(phase) * val_work(phase) / step_work(phase) : 0;
}

double TimeEstimate::epoch_seconds(std::size_t phase, double save) const {
  double seconds = static_cast<double>(work_.timeline.steps(work_.phases[phase].begin_epoch)) * step_seconds(phase);
  if (work_.val_interval > 0) seconds += validation_seconds(phase) / work_.val_interval;
  if (work_.save_interval > 0) seconds += save / work_.save_interval;
  return seconds;
}

TimeLeft TimeEstimate::at(Index step) const {
  const Index last = work_.last_step, from = std::min(step, last);
  const std::size_t now = work_.phase(std::max<Index>(std::min(step, last - 1), 0));
  TimeLeft time;
  time.steps = work_.timeline.steps(work_.phases[now].begin_epoch);
  time.step = step_seconds(now);
  time.validation = validation_seconds(now);
  time.save = save_;
  time.epoch = epoch_seconds(now, time.save);
  time.left = (times_due(work_.save_interval, from, last, work_.timeline) + 1) * time.save;
  std::size_t final = now;
  for (std::size_t phase = now; phase < work_.phases.size(); ++phase) {
    const Index begin = std::max(from, work_.timeline.first_step(work_.phases[phase].begin_epoch));
    const bool ends = phase + 1 < work_.phases.size();
    const Index end = ends ? std::min(last, work_.timeline.first_step(work_.phases[phase + 1].begin_epoch)) : last;
    if (begin >= end) continue;
    final = phase;
    time.left += static_cast<double>(end - begin) * step_seconds(phase) +
                 times_due(work_.val_interval, begin, end, work_.timeline) * validation_seconds(phase);
    if (phase > now) time.later_epochs.push_back(epoch_seconds(phase, time.save));
  }
  const bool validated = last > 0 && times_due(work_.val_interval, last - 1, last, work_.timeline) > 0;
  if (!validated) time.left += validation_seconds(final);
  return time;
}

void TimeEstimate::tell(Index step) {
  told_ = true;
  const TimeLeft time = at(step);
  log::info("{}", describe(time));
  log::info("{}", describe(JobTime{.left = time.left,
                                   .start_up = start_up_,
                                   .limit = limit_.end_time > 0 ? limit_.end_time - limit_.began : 0,
                                   .margin = limit_.margin,
                                   .elapsed = wall_seconds() - limit_.began,
                                   .epoch = time.epoch}));
}

std::string describe(const TimeLeft& time) {
  std::string text =
      fmt::format("forecast: a step {:.1f} ms, an epoch {} ({} {}", time.step * 1e3, duration(time.epoch),
                  counted(time.steps, "step"), duration(time.step * static_cast<double>(time.steps)));
  if (time.validation > 0) text += fmt::format(", a validation {}", duration(time.validation));
  if (time.save > 0) text += fmt::format(", a checkpoint {}", duration(time.save));
  text += ")";
  for (std::size_t i = 0; i < time.later_epochs.size(); ++i)
    text += (i == 0 ? ", of later phases " : " and ") + duration(time.later_epochs[i]);
  return text + fmt::format(", to the end of the run {}", duration(time.left));
}

Index jobs_to_come(const JobTime& time) {
  if (time.limit <= 0) return 0;
  const double here = time.limit - time.margin - time.elapsed;
  if (time.left <= here) return 0;
  const double each = time.limit - time.margin - time.start_up;
  if (each <= 0) return -1;
  return static_cast<Index>(std::ceil((time.left - std::max(here, 0.0)) / each));
}

std::string describe(const JobTime& time) {
  const std::string ask = time_to_ask_for(time.elapsed + time.left + time.margin);
  if (time.limit <= 0) return fmt::format("for the whole run in one job ask for {} (Slurm --time, PBS walltime)", ask);
  const Index more = jobs_to_come(time);
  const std::string limit = duration(time.limit);
  if (more == 0) return fmt::format("the time limit of {} is enough for the whole run", limit);
  if (more < 0) return fmt::format("the time limit of {} leaves no time for training; ask for {}", limit, ask);
  std::string text = fmt::format(
      "the time limit of {} is too short for the whole run: {} more job{} of this length will follow, or ask for {} (Slurm --time, PBS walltime)",
      limit, more, more == 1 ? "" : "s", ask);
  if (time.epoch > time.limit - time.margin - time.start_up) {
    text += "; not one epoch fits in a job: save in between (--save-every-minutes)";
  }
  return text;
}

std::string time_to_ask_for(double seconds) {
  constexpr double reserve = 1.1;
  const auto minutes = static_cast<Index>(std::ceil(seconds * reserve / 60 - 1e-9));
  const Index whole = std::max<Index>(minutes, 1);
  return fmt::format("{:02}:{:02}:00", whole / 60, whole % 60);
}

}  // namespace convoy
