// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

constexpr double pi = 3.14159265358979323846;

bool usable(double rate) { return std::isfinite(rate) && rate >= 0; }

void check_warmup(const ScheduleSpec& spec) {
  if (spec.warmup_epochs == 0) return;
  if (spec.decay == Decay::onecycle || spec.decay == Decay::phases)
    fail(
        Exit::usage,
        "--warmup-epochs can't be used with the onecycle and phases schedules (their learning rate rises by itself); remove it");
  if (!(spec.warmup_epochs > 0) || !usable(spec.warmup_rate))
    fail(Exit::usage, "bad warm-up ({} epochs from learning rate {}); give both as numbers from 0 on",
         spec.warmup_epochs, spec.warmup_rate);
  if (spec.warmup_epochs >= spec.epochs && spec.decay != Decay::constant && spec.decay != Decay::plateau)
    fail(Exit::usage, "the warm-up of {} epochs is as long as the run of {}; shorten --warmup-epochs",
         spec.warmup_epochs, spec.epochs);
}

void check_factor(const ScheduleSpec& spec) {
  if (!usable(spec.factor))
    fail(Exit::usage, "bad factor {} of the learning rate; give a number from 0 on", spec.factor);
}

void check_steps(const ScheduleSpec& spec) {
  const auto& at = spec.step_epochs;
  const bool ascending = std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) == at.end();
  if (at.empty() || !(at.front() > 0) || !ascending)
    fail(Exit::usage, "the step schedules need ascending epochs above 0; give them by --lr-step-epochs, e.g. 30,60,80");
  if (spec.decay == Decay::step && at.size() != 1)
    fail(Exit::usage, "the step schedule takes one number of epochs (got {}); use multistep for a list", at.size());
}

void check_onecycle(const ScheduleSpec& spec) {
  if (!(spec.onecycle_start > 0) || !(spec.onecycle_start < 1))
    fail(Exit::usage, "the part of onecycle in which the learning rate rises must lie between 0 and 1 (got {})",
         spec.onecycle_start);
  if (!(spec.onecycle_div > 0) || !(spec.onecycle_final_div > 0))
    fail(Exit::usage, "the divisors of onecycle must be above 0 (got {} and {})", spec.onecycle_div,
         spec.onecycle_final_div);
}

void check_phases(const std::vector<RatePhase>& phases) {
  if (phases.empty()) fail(Exit::usage, "the phases schedule needs at least one [phase.N] section with epochs and lr");
  double end = 0;
  for (const RatePhase& phase : phases) {
    if (!(phase.begin_epoch >= end) || !(phase.end_epoch > phase.begin_epoch))
      fail(Exit::usage,
           "phases must be in order, not empty and must not overlap (epochs {} to {} follow one that ends at {})",
           phase.begin_epoch, phase.end_epoch, end);
    if (!usable(phase.from) || !usable(phase.to))
      fail(Exit::usage, "bad learning rate {}:{} of the phase at epoch {}; give numbers from 0 on", phase.from,
           phase.to, phase.begin_epoch);
    end = phase.end_epoch;
  }
}

void check(const ScheduleSpec& spec, Index steps_per_epoch) {
  require(steps_per_epoch > 0, "a schedule needs steps");
  if (!usable(spec.rate) || !usable(spec.min_rate))
    fail(Exit::usage, "bad learning rate {} (minimum {}); give finite numbers from 0 on", spec.rate, spec.min_rate);
  const bool needs_length = spec.decay == Decay::poly || spec.decay == Decay::cosine || spec.decay == Decay::linear ||
                            spec.decay == Decay::onecycle;
  if (needs_length && !(spec.epochs > 0 && std::isfinite(spec.epochs)))
    fail(Exit::usage, "this schedule needs the length of the run (got {} epochs); set --epochs", spec.epochs);
  check_warmup(spec);
  check_factor(spec);
  if (spec.decay == Decay::step || spec.decay == Decay::multistep) check_steps(spec);
  if (spec.decay == Decay::poly && !(spec.power > 0))
    fail(Exit::usage, "the power of the poly schedule must be above 0 (got {})", spec.power);
  if (spec.decay == Decay::onecycle) check_onecycle(spec);
  if (spec.decay == Decay::phases) check_phases(spec.phases);
}

double linear(double from, double to, double part) { return from + (to - from) * part; }
double cosine(double from, double to, double part) { return to + (from - to) / 2 * (1 + std::cos(pi * part)); }

/// Smith, Topin 2017 (arXiv 1708.07120) as PyTorch's OneCycleLR defines it: the rise ends at step start * total - 1,
/// the fall at total - 1, so that the last step has the last learning rate.
double onecycle(const ScheduleSpec& spec, double step, double total) {
  const double first = spec.rate / spec.onecycle_div, last = first / spec.onecycle_final_div;
  const double top = spec.onecycle_start * total - 1, end = total - 1;
  const auto anneal = spec.onecycle_linear ? linear : cosine;
  if (step < top) return anneal(first, spec.rate, step / top);
  if (end <= top) return spec.rate;
  return anneal(spec.rate, last, std::min((step - top) / (end - top), 1.0));
}

/// Between phases the learning rate stays where the last one ended; before the first phase it is where that one begins.
double piecewise(const std::vector<RatePhase>& phases, double epoch) {
  const auto after = std::upper_bound(phases.begin(), phases.end(), epoch,
                                      [](double at, const RatePhase& phase) { return at < phase.begin_epoch; });
  if (after == phases.begin()) return phases.front().from;
  const RatePhase& phase = *(after - 1);
  const double part = (epoch - phase.begin_epoch) / (phase.end_epoch - phase.begin_epoch);
  return linear(phase.from, phase.to, std::min(part, 1.0));
}

}  // namespace

std::vector<RatePhase> epochs_between_phases(const ScheduleSpec& spec) {
  std::vector<RatePhase> gaps;
  if (spec.decay != Decay::phases || spec.phases.empty()) return gaps;
  double end = 0, kept = spec.phases.front().from;
  const auto up_to = [&](double begin) {
    if (begin > end) gaps.push_back({end, begin, kept, kept});
  };
  for (const RatePhase& phase : spec.phases) {
    up_to(std::min(phase.begin_epoch, spec.epochs));
    end = phase.end_epoch;
    kept = phase.to;
  }
  up_to(spec.epochs);
  return gaps;
}

Schedule::Schedule(ScheduleSpec spec, Index steps_per_epoch)
    : spec_(std::move(spec)), steps_per_epoch_(static_cast<double>(steps_per_epoch)) {
  check(spec_, steps_per_epoch);
}

double Schedule::rate_at(double step) const {
  const double total = std::round(spec_.epochs * steps_per_epoch_),
               warmup = std::round(spec_.warmup_epochs * steps_per_epoch_);
  if (step < warmup) return linear(spec_.warmup_rate, spec_.rate, step / warmup);
  // Decays over the whole run share out what the warm-up leaves; milestones are epochs of the run.
  const double part = std::clamp((step - warmup) / std::max(total - warmup, 1.0), 0.0, 1.0);
  switch (spec_.decay) {
    case Decay::constant:
    case Decay::plateau:
      return spec_.rate;
    case Decay::step: {
      const double every = std::max(std::round(spec_.step_epochs[0] * steps_per_epoch_), 1.0);
      return std::max(spec_.rate * std::pow(spec_.factor, std::floor(step / every)), spec_.min_rate);
    }
    case Decay::multistep: {
      const auto passed = std::count_if(spec_.step_epochs.begin(), spec_.step_epochs.end(),
                                        [&](double epoch) { return step >= std::round(epoch * steps_per_epoch_); });
      return std::max(spec_.rate * std::pow(spec_.factor, static_cast<double>(passed)), spec_.min_rate);
    }
    case Decay::exponential:
      return std::max(spec_.rate * std::pow(spec_.factor, (step - warmup) / steps_per_epoch_), spec_.min_rate);
    case Decay::poly:
      return linear(spec_.min_rate, spec_.rate, std::pow(1 - part, spec_.power));
    case Decay::cosine:
      return cosine(spec_.rate, spec_.min_rate, part);
    case Decay::linear:
      return linear(spec_.rate, spec_.min_rate, part);
    case Decay::onecycle:
      return onecycle(spec_, step, total);
    case Decay::phases:
      return piecewise(spec_.phases, step / steps_per_epoch_);
  }
  return spec_.rate;
}

double RateRamp::rate(Index step) const {
  const double part = static_cast<double>(step - first) / static_cast<double>(std::max<Index>(steps - 1, 1));
  return low * std::pow(high / low, part);
}

double scaled_rate(double base_rate, Scaling scaling, Index global_batch, Index base_batch) {
  if (scaling == Scaling::none) return base_rate;
  if (base_batch <= 0) fail(Exit::usage, "--lr-base-batch must be above 0 (got {})", base_batch);
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(base_batch);
  return base_rate * (scaling == Scaling::sqrt ? std::sqrt(ratio) : ratio);
}

}  // namespace convoy
