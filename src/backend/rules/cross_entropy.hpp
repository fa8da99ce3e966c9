// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy of one sample with two weighted labels and label smoothing. The target of class k is
//   t[k] = (1 - smoothing) * (lambda * [k = a] + (1 - lambda) * [k = b]) + smoothing / classes,   sum t = 1
// so loss = logsumexp(z) - sum t[k] z[k] and dz[k] = softmax(z)[k] - t[k]. With class weights w (torch's
// CrossEntropyLoss(weight=), before its mean) u[k] = w[k] t[k] stands for t[k], and
//   loss = U logsumexp(z) - sum u[k] z[k],   dz[k] = U softmax(z)[k] - u[k],   U = sum u.
#pragma once
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

struct SoftTarget {
  std::int32_t a, b;
  double lambda, smoothing, classes;
  const float* weights = nullptr;  ///< of the classes; null: all are 1

  CONVOY_HD double weight(std::int32_t k) const { return weights == nullptr ? 1 : static_cast<double>(weights[k]); }
  /// u[k].
  CONVOY_HD double operator()(std::int32_t k) const {
    return weight(k) * ((1 - smoothing) * ((k == a ? lambda : 0) + (k == b ? 1 - lambda : 0)) + smoothing / classes);
  }
  /// U. `weight_sum`: of all classes.
  CONVOY_HD double mass(double weight_sum) const {
    if (weights == nullptr) return 1;
    return (1 - smoothing) * (lambda * weight(a) + (1 - lambda) * weight(b)) + smoothing / classes * weight_sum;
  }
  /// `log_sum`: logsumexp(z); `za`, `zb`: the labels' logits; `sum`: of all logits, each times its weight.
  CONVOY_HD double loss(double log_sum, double mass, double za, double zb, double sum) const {
    return mass * log_sum - (1 - smoothing) * (lambda * weight(a) * za + (1 - lambda) * weight(b) * zb) -
           smoothing / classes * sum;
  }
};

/// Whether class k ranks before the label: by logit, then by lower index. A logit that is NaN ranks before any label,
/// and a label's NaN ranks last, so that a diverged network scores no hit.
CONVOY_HD inline bool ranks_before(float zk, std::int32_t k, float label_logit, std::int32_t label) {
  return !(zk < label_logit) && (zk != label_logit || k < label);
}

}  // namespace convoy
