// SPDX-License-Identifier: Apache-2.0
// Activations with the derivative written in terms of the output, so that backward needs no copy of the input.
// All of them pass NaN on: a comparison that swallowed it would hide a diverged replica.
#pragma once
#include <cmath>

#include "backend/rules/portable.hpp"

namespace convoy {

/// The derivative at 0 is 0, as in PyTorch.
struct ReluCurve {
  CONVOY_HD float value(float x) const { return x < 0 ? 0.0F : x; }
  CONVOY_HD float derivative(float y) const { return y > 0 ? 1.0F : 0.0F; }
};

/// Needs slope >= 0: else the output doesn't tell the sign of the input. The derivative at 0 is the slope.
struct LeakyReluCurve {
  float slope;
  CONVOY_HD float value(float x) const { return x > 0 ? x : slope * x; }
  CONVOY_HD float derivative(float y) const { return y > 0 ? 1.0F : slope; }
};

struct TanhCurve {
  CONVOY_HD float value(float x) const { return tanhf(x); }
  CONVOY_HD float derivative(float y) const { return 1.0F - y * y; }
};

}  // namespace convoy
