// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/set_layout.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// Floats that an OuterOptimiser allocates beside its state.
Index change_floats(const SetLayout& layout);

/// Takes a step along the change of the average in a period (Wang et al., "SlowMo", ICLR 2020; Douillard et al.,
/// "DiLoCo", 2023). The anchor a is the weights with which the period began, x the average of the replicas:
///
///     d = a - x,  m = momentum * m + d,  a = a - rate * m                    momentum
///                                        a = a - rate * (d + momentum * m)   nesterov
///
/// as torch.optim.SGD updates weights with the gradient d. Every operation is a flat kernel, which rounds once. So all
/// devices compute the same bits, and ranks on different devices never drift apart.
class OuterOptimiser {
 public:
  /// Allocates the state, zeroed. There is no anchor until the loader of the sets fills it.
  OuterOptimiser(const OuterSpec& spec, const SyncParts& parts);

  /// Anchor and momentum, as OuterLayout.
  const ParameterSet& state() const { return state_; }
  const float* anchor() const { return state_.block + layout_.anchor.begin; }
  /// Takes the step and writes its result into the set, which holds the average, and into the anchor.
  /// OuterRule::average: follows.
  void step(const ParameterSet& average);
  /// The average becomes the anchor; the momentum stays.
  void follow(const ParameterSet& average);

 private:
  OuterSpec spec_;
  Backend& backend_;
  Range values_;
  OuterLayout layout_;
  ParameterSet state_;
  float* change_;  ///< of one piece
};

}  // namespace convoy
