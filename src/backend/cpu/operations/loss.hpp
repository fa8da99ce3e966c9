// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "backend/backend.hpp"

namespace convoy::cpu {

struct LossSpec {
  Index classes = 0;
  float smoothing = 0;
  float scale = 1;  ///< factor of each sample's loss, applied in dlogits only
  int topk = 5;
  std::span<const float> class_weights;  ///< empty: all are 1
};

/// Softmax cross-entropy of logits (samples.size() x classes). Writes every loss_per_sample (unscaled) and, unless
/// null, every dlogits; past `valid` both are 0. Adds loss, hits of label a and samples of the valid rows to
/// `counters`: the loss in order of samples, so that it doesn't depend on threads. A non-finite logit makes its
/// sample's loss non-finite.
void softmax_cross_entropy(const LossSpec& spec, std::span<const SampleSpec> samples, Index valid, const float* logits,
                           float* loss_per_sample, float* dlogits, Counters& counters);

}  // namespace convoy::cpu
