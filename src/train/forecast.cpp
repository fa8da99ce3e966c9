// SPDX-License-Identifier: Apache-2.0
#include "train/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "metrics/console.hpp"

namespace convoy {
namespace {

/// Ends of intervals of `every` epochs after `from` up to `to`, in steps. 0: never.
double times_due(double every, Index from, Index to, Index steps_per_epoch) {
  if (every <= 0) return 0;
  const auto count = [&](Index step) {
    constexpr double slack = 1e-9;
    return std::floor(static_cast<double>(step) / static_cast<double>(steps_per_epoch) / every + slack);
  };
  return std::max(0.0, count(to) - count(from));
}

/// Seconds where minutes would say nothing.
std::string duration(double seconds) {
  return seconds < 100 ? fmt::format("{:.1f} s", seconds) : duration_text(seconds);
}

double mean(double sum, Index count, double otherwise) {
  return count > 0 ? sum / static_cast<double>(count) : otherwise;
}

}  // namespace

void Forecast::add_step(double seconds) {
  if (++steps_ > warm_up) {
    step_seconds_ += seconds;
  } else {
    warm_up_seconds_ += seconds;
  }
}

void Forecast::add_validation(double seconds) {
  ++validations_;
  validation_seconds_ += seconds;
}

void Forecast::add_save(double seconds) {
  ++saves_;
  save_seconds_ += seconds;
}

bool Forecast::is_ready() const {
  const Index counted = steps_ - warm_up;
  return (counted >= wanted_steps && step_seconds_ >= least_seconds) ||
         (counted >= 1 && step_seconds_ >= wanted_seconds);
}

Estimate Forecast::estimate(Index step) const {
  Estimate estimate;
  estimate.step = mean(step_seconds_, steps_ - warm_up, mean(warm_up_seconds_, steps_, 0));
  // Until one was measured: forward is a third of a step, and nothing is summed over the ranks.
  const double guess = spec_.train_images > 0 ? estimate.step / 3 * spec_.val_images / spec_.train_images : 0;
  estimate.validation = spec_.val_images > 0 ? mean(validation_seconds_, validations_, guess) : 0;
  estimate.save = mean(save_seconds_, saves_, 0);

  const Index last = spec_.last_step, epoch = spec_.steps_per_epoch;
  const auto cost = [&](Index from, Index to) {
    return static_cast<double>(to - from) * estimate.step +
           times_due(spec_.val_interval, from, to, epoch) * estimate.validation +
           times_due(spec_.save_interval, from, to, epoch) * estimate.save;
  };
  estimate.epoch = cost(0, epoch);
  estimate.left = cost(std::min(step, last), last) + estimate.save;
  const bool validated = times_due(spec_.val_interval, last - 1, last, epoch) > 0;
  if (!validated) estimate.left += estimate.validation;
  return estimate;
}

std::string describe(const Estimate& estimate, const ForecastSpec& spec) {
  std::string text =
      fmt::format("forecast: a step {:.1f} ms, an epoch {} ({} steps {}", estimate.step * 1e3, duration(estimate.epoch),
                  spec.steps_per_epoch, duration(estimate.step * static_cast<double>(spec.steps_per_epoch)));
  if (spec.val_images > 0) text += fmt::format(", a validation {}", duration(estimate.validation));
  if (estimate.save > 0) text += fmt::format(", a checkpoint {}", duration(estimate.save));
  return text + fmt::format("), to the end of the run {}", duration(estimate.left));
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
