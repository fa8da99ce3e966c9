// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the step. The formulas are those of PyTorch's schedulers, called once per
// step. After the end of the run the last learning rate stays.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// plateau: as constant; what validations cut is not a function of the step (Plateau).
enum class Decay : std::uint8_t {
  constant,
  step,
  multistep,
  exponential,
  poly,
  cosine,
  linear,
  onecycle,
  phases,
  plateau
};

/// A piece of a piecewise linear schedule: the learning rate runs from `from` to `to` between two epochs.
struct RatePhase {
  double begin_epoch = 0, end_epoch = 0, from = 0, to = 0;
};

struct ScheduleSpec {
  Decay decay = Decay::cosine;
  double rate = 0.1;  ///< peak, after scaling
  double min_rate = 0;
  double epochs = 0;                          ///< length of the run
  double warmup_epochs = 0, warmup_rate = 0;  ///< linear rise; exponential, poly, cosine and linear follow it
  std::vector<double> step_epochs;            ///< multistep: at these epochs; step: every step_epochs[0]
  double factor = 0.1;                        ///< step, multistep, plateau: at each; exponential: in each epoch
  Index patience = 10;                        ///< plateau
  double power = 2;                           ///< poly
  double onecycle_start = 0.3;  ///< fraction of the run in which the learning rate rises (PyTorch's pct_start)
  double onecycle_div = 25, onecycle_final_div = 1e4;  ///< first = peak / div, last = first / final_div
  bool onecycle_linear = false;                        ///< else cosine pieces, as PyTorch's default
  std::vector<RatePhase> phases;
};

/// Epochs of a run for which no phase gives a rate, as pairs of begin and end, each with the rate that is kept there.
/// Empty for other schedules.
std::vector<RatePhase> epochs_between_phases(const ScheduleSpec& spec);

/// Gives the learning rate of each step; the epoch is step / steps_per_epoch. Throws Error(usage) for bad specs.
class Schedule {
 public:
  Schedule(ScheduleSpec spec, Index steps_per_epoch);
  /// `step`: whole numbers, or between them where epochs have several numbers of steps (Timeline::even_step).
  template <class Step>
  double rate(Step step) const {
    return rate_at(static_cast<double>(step));
  }

 private:
  double rate_at(double step) const;
  ScheduleSpec spec_;
  double steps_per_epoch_;
};

/// PyTorch's ReduceLROnPlateau(mode='max', threshold=0, cooldown=0): the learning rate is multiplied by `factor` after
/// more than `patience` validations in a row without a new best.
struct Plateau {
  Index cuts = 0, waited = 0;  ///< multiplications so far; validations since the best one or the last cut
  void see(bool new_best, Index patience) {
    waited = new_best ? 0 : waited + 1;
    if (waited <= patience) return;
    ++cuts;
    waited = 0;
  }
};

/// An exponential rise over some steps, for a range test: low * (high / low)^(i / (steps - 1)) in step i of it.
struct RateRamp {
  double low = 0, high = 0;
  Index steps = 2, first = 0;
  double rate(Index step) const;
};

enum class Scaling : std::uint8_t { none, linear, sqrt };
/// The learning rate for a global batch, from one that is given for a base batch.
double scaled_rate(double base_rate, Scaling scaling, Index global_batch, Index base_batch);

}  // namespace convoy
