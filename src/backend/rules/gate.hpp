// SPDX-License-Identifier: Apache-2.0
// What a channel gate multiplies by, as value and derivative; over Math as rules/activation.hpp. NaN passes.
#pragma once
#include "backend/rules/activation.hpp"

namespace convoy {

/// sigmoid: 1 / (1 + exp(-s)). hard_sigmoid: min(max(s + 3, 0), 6) / 6.
template <class Math>
CONVOY_FORMULA typename Math::Value gate_value(GateKind kind, typename Math::Value s) {
  using V = typename Math::Value;
  if (kind == GateKind::hard_sigmoid) {
    const V t = s + Math::of(3), y = Math::where_greater(Math::of(0), t, Math::of(0), t);
    return Math::where_greater(y, Math::of(6), Math::of(6), y) * Math::of(1.0F / 6);
  }
  const V e = Math::exp(Math::where_greater(s, Math::of(0), Math::of(0) - s, s)), r = Math::of(1) / (Math::of(1) + e);
  return Math::where_greater(s, Math::of(0), r, e * r);
}

/// d gate / d s. Of hard_sigmoid 0 at -3 and at 3, as in PyTorch.
template <class Math>
CONVOY_FORMULA typename Math::Value gate_slope(GateKind kind, typename Math::Value s) {
  using V = typename Math::Value;
  if (kind == GateKind::hard_sigmoid) {
    const V inside = Math::where_greater(Math::of(3), s, Math::of(1.0F / 6), Math::of(0));
    return Math::where_greater(s, Math::of(-3), inside, Math::of(0));
  }
  const V e = Math::exp(Math::where_greater(s, Math::of(0), Math::of(0) - s, s)), r = Math::of(1) / (Math::of(1) + e);
  return e * r * r;
}

}  // namespace convoy
