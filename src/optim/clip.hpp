// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/portable.hpp"

namespace convoy {

/// The factor that brings a gradient of this norm to at most `limit` (torch.nn.utils.clip_grad_norm_).
CONVOY_HD inline double clip_factor(double norm, double limit) {
  const double factor = limit / (norm + 1e-6);
  return factor < 1 ? factor : 1;
}

}  // namespace convoy
