// SPDX-License-Identifier: Apache-2.0
// Update rules of one weight, as PyTorch's torch.optim.SGD defines them (dampening 0): the rate stands outside of the
// velocity, so that a change of rate acts at once.
#pragma once
#include "backend/rules/portable.hpp"

namespace convoy {

/// What is the same for all elements of a tensor. `rate` includes the tensor's multiplier; `clip` scales the gradient
/// before decay is added (1: not clipped).
struct UpdateFactors {
  float rate, momentum, decay, clip;
};

/// w -= rate * (g + decay * w). Has no state.
struct SgdRule {
  static constexpr int slots = 0;
  CONVOY_HD static float step(const UpdateFactors& f, float w, float g, float&) {
    return w - f.rate * (f.clip * g + f.decay * w);
  }
};

/// v = momentum * v + g + decay * w; w -= rate * v.
struct MomentumRule {
  static constexpr int slots = 1;
  CONVOY_HD static float step(const UpdateFactors& f, float w, float g, float& v) {
    v = f.momentum * v + (f.clip * g + f.decay * w);
    return w - f.rate * v;
  }
};

/// d = g + decay * w; v = momentum * v + d; w -= rate * (d + momentum * v).
struct NesterovRule {
  static constexpr int slots = 1;
  CONVOY_HD static float step(const UpdateFactors& f, float w, float g, float& v) {
    const float d = f.clip * g + f.decay * w;
    v = f.momentum * v + d;
    return w - f.rate * (d + f.momentum * v);
  }
};

/// Factor that brings a gradient of this norm to at most `limit` (torch.nn.utils.clip_grad_norm_).
CONVOY_HD inline double clip_factor(double norm, double limit) {
  const double factor = limit / (norm + 1e-6);
  return factor < 1 ? factor : 1;
}

/// Exponential moving average of a weight: `keep` of what it was, the rest of the weight. With keep 0 the weight
/// itself.
CONVOY_HD inline float blend(float average, float weight, float keep) { return keep * average + (1 - keep) * weight; }

/// Running statistic after a batch (PyTorch's convention: momentum weighs the new value).
CONVOY_HD inline float fold_statistic(float running, float batch, float momentum) {
  return (1 - momentum) * running + momentum * batch;
}

}  // namespace convoy
