// SPDX-License-Identifier: Apache-2.0
#include "backend/rules/dropout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace convoy {
namespace {

constexpr std::int64_t count = 20000;

std::vector<float> factors(float rate, std::uint64_t seed, std::int64_t step, std::int64_t node,
                           std::int64_t position) {
  const std::uint64_t key = dropout_sample_key(dropout_key(seed, step, node), position);
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(DropoutRule::of(rate).factor(key, i));
  return result;
}

double share_dropped(const std::vector<float>& values) {
  return static_cast<double>(std::count(values.begin(), values.end(), 0.0F)) / count;
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.9F}) {
    const std::vector<float> values = factors(rate, 1, 2, 3, 4);
    const double deviation = std::sqrt(rate * (1 - rate) / count);
    EXPECT_NEAR(share_dropped(values), rate, 4 * deviation) << rate;
    for (const float value : values) ASSERT_TRUE(value == 0 || value == 1 / (1 - rate)) << value;
  }
}

// Masks that shared bits would agree in more than half of their places.
TEST(Dropout, EverySeedStepNodeAndPositionHasItsOwnMask) {
  const std::vector<float> first = factors(0.5F, 1, 2, 3, 4);
  for (const auto& other : {factors(0.5F, 2, 2, 3, 4), factors(0.5F, 1, 3, 3, 4), factors(0.5F, 1, 2, 4, 4),
                            factors(0.5F, 1, 2, 3, 5), factors(0.5F, 2, 1, 3, 4), factors(0.5F, 1, 3, 2, 4)}) {
    double equal = 0;
    for (std::size_t i = 0; i < first.size(); ++i) equal += first[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(equal / count, 0.5, 4 * std::sqrt(0.25 / count));
  }
}

TEST(Dropout, NeighbouringElementsAreIndependent) {
  const std::vector<float> values = factors(0.5F, 7, 0, 0, 0);
  for (const std::size_t distance : {1U, 2U, 64U}) {
    double equal = 0;
    for (std::size_t i = 0; i + distance < values.size(); ++i) equal += values[i] == values[i + distance] ? 1 : 0;
    EXPECT_NEAR(equal / count, 0.5, 5 * std::sqrt(0.25 / count)) << distance;
  }
}

}  // namespace
}  // namespace convoy
