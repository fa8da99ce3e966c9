// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "backend/backend.hpp"

namespace convoy::cpu {

struct LossSpec {
  Index classes = 0;
  float smoothing = 0;
  float scale = 1;     ///< factor of each sample's loss, applied in dlogits only
  float weight = 1;    ///< of this head in loss_per_sample and in dlogits
  bool adds = false;   ///< to loss_per_sample, which other heads began
  bool counts = true;  ///< the network's own head, which comes last: loss_per_sample, hits and samples are counted
  int topk = 5;
  std::span<const float> class_weights;  ///< empty: all are 1
};

/// Softmax cross-entropy of logits (samples.size() x classes). Writes every loss_per_sample (unscaled) and, unless
/// null, every dlogits; past `valid` both are 0. A head that counts adds loss, hits of label a and samples of the valid
/// rows to `counters`: the loss in order of samples, so that it doesn't depend on threads. A non-finite logit makes its
/// sample's loss non-finite.
void softmax_cross_entropy(const LossSpec& spec, std::span<const SampleSpec> samples, Index valid, const float* logits,
                           float* loss_per_sample, float* dlogits, Counters& counters);

}  // namespace convoy::cpu
