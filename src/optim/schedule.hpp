// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the step. Formulas are those of PyTorch's schedulers stepped once a step;
// after the end of the run the last rate stays.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

enum class Decay : std::uint8_t { constant, step, multistep, poly, cosine, linear, onecycle, phases };

/// Piece of a piecewise linear schedule: the rate runs from `from` to `to` between two epochs.
struct RatePhase {
  double begin_epoch = 0, end_epoch = 0, from = 0, to = 0;
};

struct ScheduleSpec {
  Decay decay = Decay::cosine;
  double rate = 0.1;  ///< peak, after scaling
  double min_rate = 0;
  double epochs = 0;                          ///< length of the run
  double warmup_epochs = 0, warmup_rate = 0;  ///< linear rise; poly, cosine, linear then run over the rest
  std::vector<double> step_epochs;            ///< multistep: at these epochs; step: every step_epochs[0]
  double factor = 0.1;
  double power = 2;                                    ///< poly
  double onecycle_start = 0.3;                         ///< fraction of the run that rises (PyTorch's pct_start)
  double onecycle_div = 25, onecycle_final_div = 1e4;  ///< first rate = rate / div, last = first / final_div
  bool onecycle_linear = false;                        ///< else cosine pieces, as PyTorch's default
  std::vector<RatePhase> phases;
};

/// Rate of a step: per step, not per epoch; epoch position = step / steps_per_epoch. Throws Error(usage) for bad specs.
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

enum class Scaling : std::uint8_t { none, linear, sqrt };
/// Rate for a global batch from a base rate given for a base batch.
double scaled_rate(double base_rate, Scaling scaling, Index global_batch, Index base_batch);

}  // namespace convoy
