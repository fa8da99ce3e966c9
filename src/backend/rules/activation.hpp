// SPDX-License-Identifier: Apache-2.0
// Activations: y = value(x), dy/dx = derivative(x, y). One struct a kind and one line in with_activation().
//
// A rule says what its derivative reads: of x where !needs_input, and of y where !needs_output, it may be given
// anything. All rules pass NaN on: a comparison that swallowed it would hide a diverged replica.
//
// The formulas are written over `Math`, so that one text serves floats (FloatMath: kernels on GPUs) and vectors of
// floats (a backend's own Math):
//   Value                                one number or a vector of them, with + - * / between Values
//   of(float)                            the constant in every lane
//   where_greater(a, b, yes, no)         a > b ? yes : no; a comparison with NaN chooses no
//   tanh(x)
//   exp(x)                               for x <= 0
#pragma once
#include <cmath>

#include "core/portable.hpp"
#include "network/operations/activation_kind.hpp"

namespace convoy {

struct FloatMath {
  using Value = float;
  CONVOY_FORMULA static float of(float value) { return value; }
  CONVOY_FORMULA static float where_greater(float a, float b, float yes, float no) { return a > b ? yes : no; }
  CONVOY_FORMULA static float tanh(float x) { return tanhf(x); }
  CONVOY_FORMULA static float exp(float x) { return expf(x); }
};

/// y = x.
template <class Math>
struct Identity {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = false;
  CONVOY_FORMULA V value(V x) const { return x; }
  CONVOY_FORMULA V derivative(V, V) const { return Math::of(1); }
};

/// The derivative at 0 is 0, as in PyTorch.
template <class Math>
struct Relu {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = true;
  CONVOY_FORMULA V value(V x) const { return Math::where_greater(Math::of(0), x, Math::of(0), x); }
  CONVOY_FORMULA V derivative(V, V y) const { return Math::where_greater(y, Math::of(0), Math::of(1), Math::of(0)); }
};

/// Needs slope >= 0: else the output doesn't tell the sign of the input. The derivative at 0 is the slope.
template <class Math>
struct LeakyRelu {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = true;
  V slope;
  CONVOY_FORMULA V value(V x) const { return Math::where_greater(x, Math::of(0), x, slope * x); }
  CONVOY_FORMULA V derivative(V, V y) const { return Math::where_greater(y, Math::of(0), Math::of(1), slope); }
};

template <class Math>
struct Tanh {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = true;
  CONVOY_FORMULA V value(V x) const { return Math::tanh(x); }
  CONVOY_FORMULA V derivative(V, V y) const { return Math::of(1) - y * y; }
};

/// Hendrycks and Gimpel 2016 in the exact form, PyTorch's default: y = x * P(x), P the distribution function of the
/// normal distribution, so that dy/dx = P(x) + x * exp(-x^2 / 2) / sqrt(2 pi).
///
/// With a = |x| and t = 1 / (1 + a / 4), the tail P(-a) is exp(-a^2 / 2) * t * (polynomial of t), fitted to
/// erfcx(a / sqrt(2)) / (2 t) with an error of 1.3e-8. In float both y and dy/dx are within 3e-7 * max(1, |x|) of the
/// exact ones, and y keeps its relative precision for x far below 0, where 1 + erf would cancel.
template <class Math>
struct Gelu {
  using V = typename Math::Value;
  static constexpr bool needs_input = true, needs_output = false;
  CONVOY_FORMULA V value(V x) const { return x * distribution(x, bell(x)); }
  CONVOY_FORMULA V derivative(V x, V) const {
    const V e = bell(x);
    return distribution(x, e) + Math::of(0.398942280F) * x * e;
  }

 private:
  CONVOY_FORMULA static V bell(V x) { return Math::exp(Math::of(-0.5F) * x * x); }
  CONVOY_FORMULA static V distribution(V x, V e) {
    const V a = Math::where_greater(x, Math::of(0), x, Math::of(0) - x);
    const V t = Math::of(1) / (Math::of(1) + Math::of(0.25F) * a);
    V p = Math::of(0.0298073604F);
    p = p * t + Math::of(-0.172758602F);
    p = p * t + Math::of(0.337592686F);
    p = p * t + Math::of(-0.253597446F);
    p = p * t + Math::of(0.235127491F);
    p = p * t + Math::of(0.0185225808F);
    p = p * t + Math::of(0.107496638F);
    p = p * t + Math::of(0.0979793473F);
    p = p * t + Math::of(0.0998299383F);
    const V tail = e * t * p;
    return Math::where_greater(x, Math::of(0), Math::of(1) - tail, tail);
  }
};

/// y = x * s(x), s(x) = 1 / (1 + exp(-x)); dy/dx = s * (1 + x * (1 - s)).
template <class Math>
struct Silu {
  using V = typename Math::Value;
  static constexpr bool needs_input = true, needs_output = false;
  CONVOY_FORMULA V value(V x) const {
    const V e = decay(x), r = Math::of(1) / (Math::of(1) + e);
    return x * Math::where_greater(x, Math::of(0), r, e * r);
  }
  CONVOY_FORMULA V derivative(V x, V) const {
    const V e = decay(x), r = Math::of(1) / (Math::of(1) + e);
    const V s = Math::where_greater(x, Math::of(0), r, e * r), rest = Math::where_greater(x, Math::of(0), e * r, r);
    return s * (Math::of(1) + x * rest);
  }

 private:
  /// exp(-|x|), which can't overflow.
  CONVOY_FORMULA static V decay(V x) { return Math::exp(Math::where_greater(x, Math::of(0), Math::of(0) - x, x)); }
};

/// y = min(max(x, 0), 6). The derivative at 0 and at 6 is 0, as in PyTorch.
template <class Math>
struct Relu6 {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = true;
  CONVOY_FORMULA V value(V x) const {
    const V y = Math::where_greater(Math::of(0), x, Math::of(0), x);
    return Math::where_greater(y, Math::of(6), Math::of(6), y);
  }
  CONVOY_FORMULA V derivative(V, V y) const {
    const V below = Math::where_greater(Math::of(6), y, Math::of(1), Math::of(0));
    return Math::where_greater(y, Math::of(0), below, Math::of(0));
  }
};

/// Howard et al. 2019 (arXiv 1905.02244): y = x * min(max(x + 3, 0), 6) / 6. The derivative is 0 at -3 and 1 at 3, as
/// in PyTorch.
template <class Math>
struct HardSwish {
  using V = typename Math::Value;
  static constexpr bool needs_input = true, needs_output = false;
  CONVOY_FORMULA V value(V x) const {
    const V t = x + Math::of(3), y = Math::where_greater(Math::of(0), t, Math::of(0), t);
    return x * Math::where_greater(y, Math::of(6), Math::of(6), y) * Math::of(1.0F / 6);
  }
  CONVOY_FORMULA V derivative(V x, V) const {
    const V middle = x * Math::of(1.0F / 3) + Math::of(0.5F);
    const V above = Math::where_greater(Math::of(3), x, middle, Math::of(1));
    return Math::where_greater(x, Math::of(-3), above, Math::of(0));
  }
};

/// y = slope * x.
template <class Math>
struct Scale {
  using V = typename Math::Value;
  static constexpr bool needs_input = false, needs_output = false;
  V slope;
  CONVOY_FORMULA V value(V x) const { return slope * x; }
  CONVOY_FORMULA V derivative(V, V) const { return slope; }
};

/// Calls use(rule) with the rule of `kind`. `slope`: of leaky_relu and scale. `use` runs where its caller runs, host or
/// device.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Math, class Use>
CONVOY_FORMULA void with_activation(ActivationKind kind, float slope, const Use& use) {
  switch (kind) {
    case ActivationKind::identity:
      return use(Identity<Math>{});
    case ActivationKind::relu:
      return use(Relu<Math>{});
    case ActivationKind::leaky_relu:
      return use(LeakyRelu<Math>{Math::of(slope)});
    case ActivationKind::tanh:
      return use(Tanh<Math>{});
    case ActivationKind::gelu:
      return use(Gelu<Math>{});
    case ActivationKind::silu:
      return use(Silu<Math>{});
    case ActivationKind::relu6:
      return use(Relu6<Math>{});
    case ActivationKind::hard_swish:
      return use(HardSwish<Math>{});
    case ActivationKind::scale:
      return use(Scale<Math>{Math::of(slope)});
  }
}

/// What the derivative of a kind reads.
struct DerivativeNeeds {
  bool input = false, output = false;
};
inline DerivativeNeeds derivative_needs(ActivationKind kind) {
  DerivativeNeeds needs;
  with_activation<FloatMath>(kind, 0, [&](auto rule) {
    needs = {decltype(rule)::needs_input, decltype(rule)::needs_output};
  });
  return needs;
}

}  // namespace convoy
