// SPDX-License-Identifier: Apache-2.0
// Exponential moving averages: of weights, and of batch norm's statistics.
#pragma once
#include "core/portable.hpp"

namespace convoy {

/// `keep` of the average and the rest of the weight. With keep 0 the result is the weight itself.
CONVOY_HD inline float blend(float average, float weight, float keep) { return keep * average + (1 - keep) * weight; }

/// The running statistic after a batch. `momentum` weighs the new value, as in PyTorch.
CONVOY_HD inline float fold_statistic(float running, float batch, float momentum) {
  return (1 - momentum) * running + momentum * batch;
}

}  // namespace convoy
