// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy of one sample with two weighted labels and label smoothing. The target of class k is
//   t[k] = (1 - smoothing) * (lambda * [k = a] + (1 - lambda) * [k = b]) + smoothing / classes,   sum t = 1
// so loss = logsumexp(z) - sum t[k] z[k] and dz[k] = softmax(z)[k] - t[k].
#pragma once
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

struct SoftTarget {
  std::int32_t a, b;
  double lambda, smoothing, classes;

  CONVOY_HD double operator()(std::int32_t k) const {
    return (1 - smoothing) * ((k == a ? lambda : 0) + (k == b ? 1 - lambda : 0)) + smoothing / classes;
  }
  /// `log_sum`: logsumexp(z); `za`, `zb`: the labels' logits; `sum`: of all logits.
  CONVOY_HD double loss(double log_sum, double za, double zb, double sum) const {
    return log_sum - (1 - smoothing) * (lambda * za + (1 - lambda) * zb) - smoothing / classes * sum;
  }
};

/// Whether class k ranks before the label: by logit, then by lower index. A logit that is NaN ranks before any label,
/// and a label's NaN ranks last, so that a diverged network scores no hit.
CONVOY_HD inline bool ranks_before(float zk, std::int32_t k, float label_logit, std::int32_t label) {
  return !(zk < label_logit) && (zk != label_logit || k < label);
}

}  // namespace convoy
