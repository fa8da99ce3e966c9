// SPDX-License-Identifier: Apache-2.0
#include "backend/rules/activation.hpp"
#include "backend/rules/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backend/rules/exponential.hpp"
#include "network/operations/activation.hpp"

namespace convoy {
namespace {

/// As a backend's vectors compute: with the polynomial in place of the library's function.
struct PolynomialMath : FloatMath {
  static float two_to(float n) {
    const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static float exp(float x) { return std::isnan(x) ? x : exp_by_polynomial<PolynomialMath>(x); }
};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> points() {
  std::vector<float> all;
  for (int i = -240000; i <= 240000; ++i) all.push_back(static_cast<float>(i) * 1e-4F);
  return all;
}

double distribution(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The largest errors of value and derivative over the points, in units of max(1, |x|).
struct Errors {
  double value = 0, derivative = 0;
};
template <class Rule, class Value, class Derivative>
Errors errors_of(const Rule& rule, const Value& value, const Derivative& derivative) {
  Errors worst;
  for (const float x : points()) {
    const double unit = std::max(1.0, std::abs(static_cast<double>(x)));
    worst.value = std::max(worst.value, std::abs(rule.value(x) - value(x)) / unit);
    worst.derivative = std::max(worst.derivative, std::abs(rule.derivative(x, nan) - derivative(x)) / unit);
  }
  return worst;
}

template <class Math>
class ActivationRule : public testing::Test {};
using Maths = testing::Types<FloatMath, PolynomialMath>;
TYPED_TEST_SUITE(ActivationRule, Maths);

TYPED_TEST(ActivationRule, GeluIsWithinTheErrorThatItsCommentStates) {
  const Errors errors = errors_of(
      Gelu<TypeParam>{}, [](double x) { return x * distribution(x); },
      [](double x) { return distribution(x) + x * density(x); });
  EXPECT_LT(errors.value, 3e-7);
  EXPECT_LT(errors.derivative, 3e-7);
}

TYPED_TEST(ActivationRule, GeluKeepsItsRelativePrecisionFarBelowZero) {
  for (const float x : {-1.0F, -2.5F, -5.0F, -8.0F, -12.0F}) {
    const double exact = x * distribution(x);
    // The error of exp is that of its argument, half of x^2.
    EXPECT_NEAR(Gelu<TypeParam>{}.value(x) / exact, 1, 3e-7 + 6e-8 * x * x) << x;
  }
}

TYPED_TEST(ActivationRule, SiluIsExactToFloat) {
  const Errors errors = errors_of(
      Silu<TypeParam>{}, [](double x) { return x * sigmoid(x); },
      [](double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); });
  EXPECT_LT(errors.value, 2e-7);
  EXPECT_LT(errors.derivative, 2e-7);
}

TYPED_TEST(ActivationRule, HardSwishIsExactToFloat) {
  const Errors errors = errors_of(
      HardSwish<TypeParam>{}, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; },
      [](double x) { return x >= 3   ? 1
                            : x > -3 ? x / 3 + 0.5
                                     : 0; });
  EXPECT_LT(errors.value, 2e-7);
  EXPECT_LT(errors.derivative, 2e-7);
}

TYPED_TEST(ActivationRule, GatesAreExactToFloat) {
  double worst = 0;
  for (const float s : points()) {
    const double hard = std::min(std::max(s + 3.0, 0.0), 6.0) / 6, hard_slope = s > -3 && s < 3 ? 1.0 / 6 : 0;
    for (const auto& [kind, value, slope] : {std::tuple{GateKind::sigmoid, sigmoid(s), sigmoid(s) * sigmoid(-s)},
                                             {GateKind::hard_sigmoid, hard, hard_slope}}) {
      worst = std::max(worst, std::abs(gate_value<TypeParam>(kind, s) - value));
      worst = std::max(worst, std::abs(gate_slope<TypeParam>(kind, s) - slope));
    }
  }
  EXPECT_LT(worst, 2e-7);
  for (const GateKind kind : {GateKind::sigmoid, GateKind::hard_sigmoid})
    EXPECT_TRUE(std::isnan(gate_value<TypeParam>(kind, nan)));
}

/// identity, and every kind that a user can name.
std::vector<ActivationKind> all_kinds() {
  std::vector<ActivationKind> kinds{ActivationKind::identity};
  for (const std::string& name : activation_names()) kinds.push_back(activation_kind(name));
  return kinds;
}

TYPED_TEST(ActivationRule, EveryKindPassesNanOn) {
  for (const ActivationKind kind : all_kinds())
    with_activation<TypeParam>(kind, 0.1F,
                               [&](auto rule) { EXPECT_TRUE(std::isnan(rule.value(nan))) << static_cast<int>(kind); });
}

/// Backends apply activations to the channels that pad a block too, and these must stay zero.
TYPED_TEST(ActivationRule, EveryKindKeepsZero) {
  for (const ActivationKind kind : all_kinds())
    with_activation<TypeParam>(kind, 0.1F,
                               [&](auto rule) { EXPECT_EQ(rule.value(0.0F), 0.0F) << static_cast<int>(kind); });
}

TYPED_TEST(ActivationRule, DerivativesAtZeroAreThoseOfPyTorch) {
  const auto at_zero = [](ActivationKind kind) {
    float slope = nan;
    with_activation<TypeParam>(kind, 0.25F, [&](auto rule) { slope = rule.derivative(0, rule.value(0)); });
    return slope;
  };
  EXPECT_EQ(at_zero(ActivationKind::identity), 1);
  EXPECT_EQ(at_zero(ActivationKind::relu), 0);
  EXPECT_EQ(at_zero(ActivationKind::leaky_relu), 0.25F);
  EXPECT_EQ(at_zero(ActivationKind::tanh), 1);
  EXPECT_NEAR(at_zero(ActivationKind::gelu), 0.5, 1e-7);
  EXPECT_EQ(at_zero(ActivationKind::silu), 0.5F);
  EXPECT_EQ(at_zero(ActivationKind::relu6), 0);
  EXPECT_EQ(at_zero(ActivationKind::hard_swish), 0.5F);
  EXPECT_EQ(at_zero(ActivationKind::scale), 0.25F);
}

TYPED_TEST(ActivationRule, Relu6EndsAtSix) {
  with_activation<TypeParam>(ActivationKind::relu6, 0, [](auto rule) {
    for (const auto& [x, y, slope] : {std::array{-1.F, 0.F, 0.F}, {2.F, 2.F, 1.F}, {6.F, 6.F, 0.F}, {8.F, 6.F, 0.F}}) {
      EXPECT_EQ(rule.value(x), y);
      EXPECT_EQ(rule.derivative(x, y), slope) << x;
    }
  });
}

TEST(DerivativeNeeds, TellWhatMustBeKeptForBackward) {
  const auto reads = [](ActivationKind kind, bool input, bool output) {
    const DerivativeNeeds needs = derivative_needs(kind);
    return needs.input == input && needs.output == output;
  };
  EXPECT_TRUE(reads(ActivationKind::identity, false, false));
  EXPECT_TRUE(reads(ActivationKind::relu, false, true));
  EXPECT_TRUE(reads(ActivationKind::leaky_relu, false, true));
  EXPECT_TRUE(reads(ActivationKind::tanh, false, true));
  EXPECT_TRUE(reads(ActivationKind::gelu, true, false));
  EXPECT_TRUE(reads(ActivationKind::silu, true, false));
  EXPECT_TRUE(reads(ActivationKind::relu6, false, true));
  EXPECT_TRUE(reads(ActivationKind::hard_swish, true, false));
  EXPECT_TRUE(reads(ActivationKind::scale, false, false));
}

TEST(ExpByPolynomial, HasTheRelativeErrorThatItsCommentStates) {
  double worst = 0;
  for (float x = 0; x > -87.3F; x -= 1.7e-4F)
    worst = std::max(worst, std::abs(PolynomialMath::exp(x) / std::exp(static_cast<double>(x)) - 1));
  EXPECT_LT(worst, 1.5e-7);
  EXPECT_EQ(PolynomialMath::exp(0), 1);
  EXPECT_EQ(PolynomialMath::exp(-1e30F), PolynomialMath::exp(-87.3365479F));
}

}  // namespace
}  // namespace convoy
