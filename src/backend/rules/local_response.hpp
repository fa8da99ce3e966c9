// SPDX-License-Identifier: Apache-2.0
// Local response normalisation of one value. With s[c] = k + alpha / size * (sum of x^2 over the window of c):
//   y[c] = x[c] * s[c]^-beta
//   dx[c] = dy[c] * s[c]^-beta - 2 * alpha / size * beta * x[c] * (sum of t over the channels whose window holds c)
//   t[c] = dy[c] * x[c] * s[c]^(-beta - 1)
#pragma once
#include <cmath>
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

struct LocalResponseRule {
  std::int64_t size;
  float share;  ///< alpha / size
  float beta, k;

  /// The window of channel c: c - before() ... c + after(). Channel c lies in the windows of c - after() ... c +
  /// before().
  CONVOY_HD std::int64_t before() const { return size / 2; }
  CONVOY_HD std::int64_t after() const { return (size - 1) / 2; }
  /// s^-beta; `squares`: sum over the window.
  CONVOY_HD float factor(float squares) const { return powf(base(squares), -beta); }
  CONVOY_HD float base(float squares) const { return k + share * squares; }
  CONVOY_HD float coupling() const { return 2 * share * beta; }
};

}  // namespace convoy
