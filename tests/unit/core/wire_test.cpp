// SPDX-License-Identifier: Apache-2.0
// Against a search for the nearest of all 65,536 values of a format.
#include "core/wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"

namespace convoy {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Sign, exponent and digits of a 16-bit float, computed in double.
double value_of(std::uint16_t bits, Wire wire) {
  const int digits = wire == Wire::fp16 ? 10 : 7, exponents = wire == Wire::fp16 ? 31 : 255, bias = exponents / 2;
  const int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == exponents) return fraction == 0 ? sign * static_cast<double>(infinity) : std::nan("");
  const double significand = std::ldexp(fraction, -digits) + (exponent > 0 ? 1 : 0);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias);
}

/// All finite values that are not negative, in order: their bits count up.
std::vector<double> values_of(Wire wire) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; std::isfinite(value_of(static_cast<std::uint16_t>(bits), wire)); ++bits)
    values.push_back(value_of(static_cast<std::uint16_t>(bits), wire));
  return values;
}

std::uint16_t nearest(double magnitude, const std::vector<double>& values) {
  const auto upper = std::lower_bound(values.begin(), values.end(), magnitude);
  if (upper == values.begin()) return 0;
  const auto last = static_cast<std::uint16_t>(values.size() - 1);
  if (upper == values.end()) return last;
  const auto index = static_cast<std::uint16_t>(upper - values.begin());
  const double above = *upper - magnitude, below = magnitude - *(upper - 1);
  if (above == below) return static_cast<std::uint16_t>(index % 2 == 0 ? index : index - 1);
  return static_cast<std::uint16_t>(above < below ? index : index - 1);
}

class WireTest : public testing::TestWithParam<Wire> {};

TEST_P(WireTest, HoldsWhatItsBitsSay) {
  const Wire wire = GetParam();
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double wanted = value_of(half, wire);
    const float found = widened(half, wire);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(found)) << bits;
      EXPECT_TRUE(std::isnan(widened(narrowed(found, wire), wire))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(found), wanted) << bits;
      ASSERT_EQ(narrowed(found, wire), half) << "what it holds comes back";
    }
  }
}

TEST_P(WireTest, TakesTheNearest) {
  const Wire wire = GetParam();
  const std::vector<double> values = values_of(wire);
  const float largest = static_cast<float>(values.back());
  Random random(11, Stream::synthetic, 0, 0);
  const auto expect_nearest = [&](float value) {
    if (wire == Wire::bf16 && std::abs(value) > largest) return;
    const std::uint16_t wanted = nearest(static_cast<double>(std::abs(value)), values);
    ASSERT_EQ(narrowed(value, wire) & 0x7fff, wanted) << value;
    ASSERT_EQ((narrowed(value, wire) & 0x8000) != 0, std::signbit(value)) << value;
  };
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = random.bits();
    const float value = float_of_bits(bits);
    if (std::isfinite(value)) expect_nearest(value);
    expect_nearest((2 * random.uniform() - 1) * std::ldexp(1.0F, static_cast<int>(random.uniform() * 60) - 30));
  }
  // Ties, and their neighbours.
  for (std::size_t i = 0; i + 1 < values.size(); i += 7) {
    const auto middle = static_cast<float>((values[i] + values[i + 1]) / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, infinity)})
      for (const float signed_value : {value, -value}) expect_nearest(signed_value);
  }
}

TEST_P(WireTest, KeepsWhatIsNotFinite) {
  const Wire wire = GetParam();
  for (const float sign : {1.0F, -1.0F}) EXPECT_EQ(widened(narrowed(sign * infinity, wire), wire), sign * infinity);
  EXPECT_TRUE(std::isnan(widened(narrowed(float_of_bits(0x7f800001U), wire), wire)));
  EXPECT_TRUE(std::isnan(widened(narrowed(float_of_bits(0xffffffffU), wire), wire)));
}

TEST(Fp16WireTest, TakesItsLargestForWhatIsTooLarge) {
  for (const float value : {65504.0F, 65519.0F, 65520.0F, 1e6F, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(from_fp16(to_fp16(value)), 65504.0F) << value;
    EXPECT_EQ(from_fp16(to_fp16(-value)), -65504.0F) << value;
  }
}

TEST_P(WireTest, TheLoopsAreTheFormulas) {
  const Wire wire = GetParam();
  std::vector<float> values, wide(1003);
  Random random(12, Stream::synthetic, 0, 0);
  for (std::size_t i = 0; i < wide.size(); ++i)
    values.push_back(static_cast<float>(random.normal()) * std::ldexp(1.0F, static_cast<int>(i % 40) - 30));
  std::vector<std::uint16_t> halves(wide.size());
  narrow(halves.data(), values.data(), std::ssize(values), wire);
  widen(wide.data(), halves.data(), std::ssize(values), wire);
  std::vector<float> rounded = values;
  round_to(rounded.data(), std::ssize(values), wire);
  EXPECT_EQ(rounded, wide);
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], widened(narrowed(values[i], wire), wire));
}

INSTANTIATE_TEST_SUITE_P(Formats, WireTest, testing::Values(Wire::bf16, Wire::fp16),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace convoy
