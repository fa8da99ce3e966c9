// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "network/models.hpp"
#include "network/plan.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

/// A table of one tensor; initialise_parameters needs no more.
ParameterTable table_of(const std::string& name, std::vector<Index> shape, Initialiser initialiser) {
  const Index count = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
  ParameterTable table;
  table.rows.push_back({.name = name, .range = {0, count}, .shape = std::move(shape), .initialiser = initialiser});
  table.parameters = {0, align_floats(count)};
  return table;
}

std::vector<float> values_of(const ParameterTable& table, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(table.parameters.count), NAN);
  initialise_parameters(table, seed, values.data());
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

Moments moments_of(const std::vector<float>& values) {
  Moments m;
  const double n = static_cast<double>(values.size());
  for (const float x : values) m.mean += x / n;
  for (const float x : values) {
    m.deviation += (x - m.mean) * (x - m.mean) / n;
    m.largest = std::max(m.largest, std::abs(static_cast<double>(x)));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

struct Expected {
  Initialiser initialiser;
  double deviation;
  double bound;  ///< of absolute values; 0: none
};

class Distribution : public testing::TestWithParam<Expected> {};

// 128 filters of 64 x 3 x 3: fan in 576, fan out 1152, 73,728 values.
TEST_P(Distribution, HasMomentsAndBound) {
  const Expected& expected = GetParam();
  const Moments m = moments_of(values_of(table_of("conv.weight", {128, 64, 3, 3}, expected.initialiser), 7));
  const double n = 128 * 576;
  // Five standard errors of mean and deviation (the latter at most that of a normal).
  EXPECT_NEAR(m.mean, 0, 5 * expected.deviation / std::sqrt(n));
  EXPECT_NEAR(m.deviation / expected.deviation, 1, 5 / std::sqrt(2 * n));
  if (expected.bound > 0) {
    EXPECT_LE(m.largest, expected.bound * (1 + 1e-6));
    EXPECT_GT(m.largest, 0.99 * expected.bound);
  } else {
    EXPECT_GT(m.largest, 3.5 * expected.deviation);
  }
}

INSTANTIATE_TEST_SUITE_P(Fills, Distribution,
                         testing::Values(Expected{{Fill::he_fan_out_normal}, std::sqrt(2. / 1152), 0},
                                         Expected{{Fill::he_fan_in_normal}, std::sqrt(2. / 576), 0},
                                         Expected{{Fill::he_fan_in_uniform}, std::sqrt(2. / 576), std::sqrt(6. / 576)},
                                         Expected{{Fill::xavier_uniform}, std::sqrt(2. / 1728), std::sqrt(6. / 1728)},
                                         Expected{{Fill::xavier_normal}, std::sqrt(2. / 1728), 0},
                                         Expected{{Fill::normal, 0.02F}, 0.02, 0},
                                         // A normal cut at two deviations has 0.8796 of its deviation.
                                         Expected{{Fill::truncated_normal, 0.02F}, 0.02 * 0.87963, 0.04},
                                         Expected{{Fill::uniform, 0.3F}, 0.3 / std::sqrt(3.), 0.3}));

TEST(Initialise, ConstantsAndPadding) {
  const std::vector<float> ones = values_of(table_of("bn.weight", {19}, {Fill::ones}), 1);
  ASSERT_EQ(ones.size(), 32U);
  for (std::size_t i = 0; i < ones.size(); ++i) EXPECT_EQ(ones[i], i < 19 ? 1.0F : 0.0F) << i;
  const std::vector<float> zeros = values_of(table_of("bn.bias", {19}, {Fill::zeros}), 1);
  EXPECT_EQ(zeros, std::vector<float>(32, 0.0F));
}

TEST(Initialise, DiracPassesChannelsOn) {
  const auto at = [](const std::vector<float>& w, Index channels, Index k, Index c, Index y, Index x) {
    return w[static_cast<std::size_t>(((k * channels + c) * 3 + y) * 3 + x)];
  };
  const std::vector<float> more = values_of(table_of("conv.weight", {16, 8, 3, 3}, {Fill::dirac}), 3);
  float largest = 0;
  for (Index k = 0; k < 16; ++k)
    for (Index c = 0; c < 8; ++c)
      for (Index y = 0; y < 3; ++y)
        for (Index x = 0; x < 3; ++x) {
          const float value = at(more, 8, k, c, y, x);
          if (k < 8) {
            EXPECT_EQ(value, k == c && y == 1 && x == 1 ? 1 : 0) << k << ' ' << c;
          } else {
            largest = std::max(largest, std::abs(value));
          }
        }
  const double bound = 1 / std::sqrt(72.0);
  EXPECT_LE(largest, bound * (1 + 1e-6));
  EXPECT_GT(largest, 0.9 * bound);  // of 576 uniform values
  const std::vector<float> fewer = values_of(table_of("conv.weight", {4, 8, 3, 3}, {Fill::dirac}), 3);
  EXPECT_EQ(std::accumulate(fewer.begin(), fewer.end(), 0.0F), 4);
  EXPECT_EQ(at(fewer, 8, 3, 3, 1, 1), 1);
}

TEST(Initialise, LinearFansAreTheSidesOfTheMatrix) {
  EXPECT_NEAR(moments_of(values_of(table_of("fc.weight", {1000, 512}, {Fill::he_fan_in_normal}), 3)).deviation,
              std::sqrt(2. / 512), 1e-3 * std::sqrt(2. / 512) * 5);
}

TEST(Initialise, IsAFunctionOfSeedAndName) {
  const Initialiser normal{Fill::normal, 1};
  const std::vector<float> first = values_of(table_of("a.weight", {32, 32}, normal), 5);
  EXPECT_EQ(values_of(table_of("a.weight", {32, 32}, normal), 5), first);
  for (const auto& other :
       {values_of(table_of("a.weight", {32, 32}, normal), 6), values_of(table_of("b.weight", {32, 32}, normal), 5)}) {
    const double correlation = std::inner_product(first.begin(), first.end(), other.begin(), 0.0) / 1024;
    EXPECT_LT(std::abs(correlation), 5 / std::sqrt(1024.0));
  }
}

TEST(Initialise, TableOrderAndBucketsDontMatter) {
  const Plan shallow = make_plan(build_graph({.model = "resnet20", .classes = 10}), {});
  const Plan deep = make_plan(build_graph({.model = "resnet32", .classes = 100}), {.replicas = 5, .bucket_floats = 99});
  const std::vector<float> a = values_of(shallow.table, 11), b = values_of(deep.table, 11);
  for (const char* name :
       {"conv1.weight", "layer2.0.conv1.weight", "layer3.2.conv2.weight", "layer2.0.downsample.0.weight"}) {
    const Range in_a = shallow.table.find(name)->range, in_b = deep.table.find(name)->range;
    EXPECT_NE(in_a.begin, in_b.begin) << name;
    EXPECT_TRUE(std::equal(a.begin() + in_a.begin, a.begin() + in_a.end(), b.begin() + in_b.begin)) << name;
  }
}

TEST(Initialise, StatisticsStartAtMeanZeroVarianceOne) {
  const Plan plan = make_plan(build_graph({.model = "resnet20"}), {});
  std::vector<float> statistics(static_cast<std::size_t>(plan.table.statistics.count), NAN);
  initialise_statistics(plan.table, statistics.data());
  for (const NormStatistics& norm : plan.table.norms)
    for (Index i = 0; i < norm.mean.count; ++i) {
      EXPECT_EQ(statistics[static_cast<std::size_t>(norm.mean.begin + i)], 0);
      EXPECT_EQ(statistics[static_cast<std::size_t>(norm.variance.begin + i)], 1);
    }
  EXPECT_TRUE(std::none_of(statistics.begin(), statistics.end(), [](float x) { return std::isnan(x); }));
}

}  // namespace
}  // namespace convoy
