// SPDX-License-Identifier: Apache-2.0
// Epochs and steps of a run. Its phases have their own batches, and so their own number of steps per epoch.
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Whole epochs with one number of steps.
struct PhaseSteps {
  Index begin_epoch = 0;  ///< ends where the next one begins; the last has no end
  Index steps_per_epoch = 1;
};

class Timeline {
 public:
  Timeline() = default;
  /// In order; the first begins at epoch 0.
  explicit Timeline(std::vector<PhaseSteps> phases);

  /// Which phase an epoch lies in.
  std::size_t phase(Index epoch) const;
  Index steps(Index epoch) const { return phases_[phase(epoch)].steps_per_epoch; }
  bool ends_phase(Index epoch) const { return phase(epoch + 1) != phase(epoch); }
  /// The first step of an epoch, counted over the run.
  Index first_step(Index epoch) const;
  /// Epochs that `step` steps are.
  double epochs(Index step) const;
  /// The step nearest to an epoch.
  Index step(double epochs) const;
  /// Steps in units of the first phase's, for schedules: the step itself where there is one phase.
  double even_step(Index step) const;
  Index epoch_of(Index step) const;
  /// True where `every` epochs (fractions allowed) end at this step; 0: never.
  bool is_due(double every, Index step) const;

 private:
  std::vector<PhaseSteps> phases_{1};
};

}  // namespace convoy
