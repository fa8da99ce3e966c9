// SPDX-License-Identifier: Apache-2.0
#include "train/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "metrics/console.hpp"

namespace convoy {
namespace {

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

}  // namespace

void Forecast::add_step(double seconds, std::size_t phase) {
  Measured& measured = measured_[running_ = phase];
  if (++measured.steps > warm_up) {
    measured.step_seconds += seconds;
  } else {
    measured.warm_up_seconds += seconds;
  }
}

void Forecast::add_validation(double seconds, std::size_t phase) {
  ++measured_[phase].validations;
  measured_[phase].validation_seconds += seconds;
}

void Forecast::add_save(double seconds) {
  ++saves_;
  save_seconds_ += seconds;
}

bool Forecast::is_ready() const {
  const Measured& measured = measured_[running_];
  const Index counted = measured.steps - warm_up;
  return (counted >= wanted_steps && measured.step_seconds >= least_seconds) ||
         (counted >= 1 && measured.step_seconds >= wanted_seconds);
}

template <class Has>
std::size_t Forecast::nearest(std::size_t phase, const Has& has) const {
  const std::size_t phases = measured_.size();
  for (std::size_t away = 0; away < phases; ++away) {
    if (phase >= away && has(measured_[phase - away])) return phase - away;
    if (phase + away < phases && has(measured_[phase + away])) return phase + away;
  }
  return phases;
}

double Forecast::step_seconds(std::size_t phase) const {
  if (const std::size_t from = nearest(phase, [](const Measured& m) { return m.warm(); }); from < measured_.size()) {
    const Measured& m = measured_[from];
    return by_work(m.step_seconds / static_cast<double>(m.steps - warm_up), step_work(phase), step_work(from));
  }
  const std::size_t from = nearest(phase, [](const Measured& m) { return m.steps > 0; });
  if (from == measured_.size()) return 0;
  const Measured& m = measured_[from];
  return by_work(m.warm_up_seconds / static_cast<double>(m.steps), step_work(phase), step_work(from));
}

double Forecast::validation_seconds(std::size_t phase) const {
  if (spec_.phases[phase].val_images <= 0) return 0;
  const std::size_t from = nearest(phase, [](const Measured& m) { return m.validations > 0; });
  if (from < measured_.size()) {
    const Measured& m = measured_[from];
    return by_work(m.validation_seconds / static_cast<double>(m.validations), val_work(phase), val_work(from));
  }
  // Nothing is summed over the ranks: a validation is its share of a step's operations.
  return step_work(phase) > 0 ? step_seconds(phase) * val_work(phase) / step_work(phase) : 0;
}

double Forecast::epoch_seconds(std::size_t phase, double save) const {
  double seconds = static_cast<double>(spec_.timeline.steps(spec_.phases[phase].begin_epoch)) * step_seconds(phase);
  if (spec_.val_interval > 0) seconds += validation_seconds(phase) / spec_.val_interval;
  if (spec_.save_interval > 0) seconds += save / spec_.save_interval;
  return seconds;
}

Estimate Forecast::estimate(Index step) const {
  const Index last = spec_.last_step, from = std::min(step, last);
  const std::size_t now = spec_.phase(std::max<Index>(std::min(step, last - 1), 0));
  Estimate estimate;
  estimate.steps = spec_.timeline.steps(spec_.phases[now].begin_epoch);
  estimate.step = step_seconds(now);
  estimate.validation = validation_seconds(now);
  estimate.save = saves_ > 0 ? save_seconds_ / static_cast<double>(saves_) : 0;
  estimate.epoch = epoch_seconds(now, estimate.save);
  estimate.left = (times_due(spec_.save_interval, from, last, spec_.timeline) + 1) * estimate.save;
  std::size_t final = now;
  for (std::size_t phase = now; phase < spec_.phases.size(); ++phase) {
    const Index begin = std::max(from, spec_.timeline.first_step(spec_.phases[phase].begin_epoch));
    const bool ends = phase + 1 < spec_.phases.size();
    const Index end = ends ? std::min(last, spec_.timeline.first_step(spec_.phases[phase + 1].begin_epoch)) : last;
    if (begin >= end) continue;
    final = phase;
    estimate.left += static_cast<double>(end - begin) * step_seconds(phase) +
                     times_due(spec_.val_interval, begin, end, spec_.timeline) * validation_seconds(phase);
    if (phase > now) estimate.later_epochs.push_back(epoch_seconds(phase, estimate.save));
  }
  const bool validated = last > 0 && times_due(spec_.val_interval, last - 1, last, spec_.timeline) > 0;
  if (!validated) estimate.left += validation_seconds(final);
  return estimate;
}

std::string describe(const Estimate& estimate) {
  std::string text =
      fmt::format("forecast: a step {:.1f} ms, an epoch {} ({} steps {}", estimate.step * 1e3, duration(estimate.epoch),
                  estimate.steps, duration(estimate.step * static_cast<double>(estimate.steps)));
  if (estimate.validation > 0) text += fmt::format(", a validation {}", duration(estimate.validation));
  if (estimate.save > 0) text += fmt::format(", a checkpoint {}", duration(estimate.save));
  text += ")";
  for (std::size_t i = 0; i < estimate.later_epochs.size(); ++i)
    text += (i == 0 ? ", of later phases " : " and ") + duration(estimate.later_epochs[i]);
  return text + fmt::format(", to the end of the run {}", duration(estimate.left));
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
      "the time limit of {} is too short for the whole run: {} more job{} of this length will follow, or ask "
      "for {} (Slurm --time, PBS walltime)",
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
