// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/set_layout.hpp"
#include "sync/sync.hpp"

namespace convoy {

/// A step along what the replicas together have learned in a period (Wang et al., "SlowMo", ICLR 2020; Douillard et
/// al., "DiLoCo", 2023). With the anchor a, which are the weights after the period before, and the average x of the
/// replicas:
///
///     d = a - x,  m = momentum * m + d,  a = a - rate * m                    momentum
///                                        a = a - rate * (d + momentum * m)   nesterov
///
/// as torch.optim.SGD updates weights whose gradient is d. Every operation is one of a device's flat kernels, which
/// rounds once, so all devices compute the same bits, and ranks on unlike ones never drift apart.
class OuterOptimiser {
 public:
  /// Allocates the state, zeroed: until whoever loads the sets has filled it, there is no anchor.
  OuterOptimiser(const OuterSpec& spec, const SyncParts& parts);

  /// Anchor and momentum, as OuterLayout.
  const ParameterSet& state() const { return state_; }
  /// The set's values, an average, become the step's result and the new anchor.
  void step(const ParameterSet& average);
  /// The values become the anchor as they are; the momentum stays.
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
