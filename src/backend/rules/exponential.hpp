// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/portable.hpp"

namespace convoy {

/// e^x for x <= 0, for a Math (rules/activation.hpp) that has no function of its own. Relative error below 1.5e-7; what
/// lies below the smallest normal float (x < -87.3) is that float. NaN passes through.
/// Math also has two_to(n): 2^n for whole n in -126 ... 0; for NaN anything.
template <class Math>
CONVOY_FORMULA typename Math::Value exp_by_polynomial(typename Math::Value x) {
  using V = typename Math::Value;
  const V least = Math::of(-87.3365479F), to_whole = Math::of(12582912.0F);  // 1.5 * 2^23: the sum has no fraction
  x = Math::where_greater(least, x, least, x);
  const V n = (x * Math::of(1.44269504F) + to_whole) - to_whole;
  // ln 2 in two parts, the first with so few bits that its product with n is exact.
  const V r = (x - n * Math::of(0.693359375F)) + n * Math::of(2.12194440e-4F);
  V p = Math::of(0.00139262508F);
  p = p * r + Math::of(0.00836323288F);
  p = p * r + Math::of(0.0416665542F);
  p = p * r + Math::of(0.166665766F);
  p = p * r + Math::of(0.5F);
  return ((p * r) * r + r + Math::of(1)) * Math::two_to(n);
}

}  // namespace convoy
