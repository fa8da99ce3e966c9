// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "metrics/metrics.hpp"

namespace convoy {
namespace {

TEST(Summarise, GivesNormRangeMeanAndEqualBins) {
  const float values[] = {-1, -1, 0, 0.5F, 1, 3};
  const TensorSummary s = summarise("conv1.weight", values, 6, 4);
  EXPECT_EQ(s.name, "conv1.weight");
  EXPECT_DOUBLE_EQ(s.norm, std::sqrt(12.25));
  EXPECT_EQ(s.minimum, -1);
  EXPECT_EQ(s.maximum, 3);
  EXPECT_DOUBLE_EQ(s.mean, 2.5 / 6);
  EXPECT_EQ(s.edges, (std::vector<double>{-1, 0, 1, 2, 3}));
  EXPECT_EQ(s.counts, (std::vector<double>{2, 2, 1, 1}));  // a bin holds its left end, the last one both
  EXPECT_EQ(s.not_finite, 0);
}

TEST(Summarise, EqualValuesAndNoneAtAllHaveAHistogramToo) {
  const float values[] = {2, 2, 2};
  const TensorSummary equal = summarise("bias", values, 3, 2), none = summarise("none", values, 0, 2);
  EXPECT_EQ(equal.edges, (std::vector<double>{1.5, 2, 2.5}));
  EXPECT_EQ(equal.counts, (std::vector<double>{0, 3}));
  EXPECT_EQ(none.counts, (std::vector<double>{0, 0}));
  EXPECT_EQ(none.norm, 0);
  EXPECT_EQ(none.mean, 0);
}

TEST(Summarise, ValuesThatAreNotFiniteShow) {
  const float values[] = {1, std::numeric_limits<float>::quiet_NaN(), 2, std::numeric_limits<float>::infinity()};
  const TensorSummary s = summarise("weight", values, 4, 1);
  EXPECT_EQ(s.not_finite, 2);
  EXPECT_TRUE(std::isnan(s.norm));
  EXPECT_EQ(s.minimum, 1);
  EXPECT_EQ(s.maximum, 2);
  EXPECT_EQ(s.counts, (std::vector<double>{2}));
}

}  // namespace
}  // namespace convoy
