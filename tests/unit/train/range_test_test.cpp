// SPDX-License-Identifier: Apache-2.0
#include "train/range_test.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace convoy {
namespace {
using Doubt = RangeFinding::Doubt;

/// 121 rates from 1e-6 to 1e1, with a loss of `of` the rate's logarithm and an alternating error.
template <class Loss>
std::vector<RangePoint> points_of(const Loss& of, double error = 0) {
  const RateRamp ramp{.low = 1e-6, .high = 10, .steps = 121};
  std::vector<RangePoint> points;
  for (Index i = 0; i < ramp.steps; ++i) {
    const double rate = ramp.rate(i);
    points.push_back({rate, of(std::log10(rate)) + (i % 2 == 0 ? error : -error)});
  }
  return points;
}

/// Flat at 2.3, steepest at 1e-2, lowest at about 0.3, then growing.
double usual(double log_rate) {
  return 2.3 - 1.5 / (1 + std::exp(-4 * (log_rate + 2))) + std::exp(6 * (log_rate + 0.2));
}

TEST(RangeTest, ARampRisesByEqualFactors) {
  const RateRamp ramp{.low = 1e-4, .high = 1, .steps = 5, .first = 7};
  for (const auto& [step, rate] : {std::pair{Index{7}, 1e-4}, {8, 1e-3}, {9, 1e-2}, {11, 1.0}})
    EXPECT_NEAR(ramp.rate(step), rate, 1e-12 * rate);
}

/// Neighbours are 0.058 decades apart, a window has 12 points to each side: 0.7 decades.
TEST(RangeTest, FindsTheSteepestDescentAndTheLowestLoss) {
  for (const double error : {0.0, 0.05}) {
    const auto found = find_rate(points_of(usual, error));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->doubt, Doubt::none);
    EXPECT_NEAR(std::log10(found->steepest), -2, 0.18) << "within a quarter of a window";
    EXPECT_NEAR(std::log10(found->lowest_rate), -0.65, 0.7) << "the walls of the valley are not equally steep";
    EXPECT_NEAR(found->lowest_loss, 0.9, 0.15);
  }
}

TEST(RangeTest, WhatDivergedIsNotTakenForADescent) {
  auto points = points_of(usual);
  for (std::size_t i = 110; i < points.size(); ++i)
    points[i].loss = i < 118 ? 1e9 * static_cast<double>(120 - i) : std::numeric_limits<double>::infinity();
  const auto found = find_rate(points);
  ASSERT_TRUE(found);
  EXPECT_NEAR(std::log10(found->steepest), -2, 0.18);
}

/// At high rates the loss jumps about, and one of the jumps may end lower than training ever came.
TEST(RangeTest, AFallAfterTrainingBecameUnstableIsNone) {
  auto points = points_of(usual);
  for (std::size_t i = 96; i < points.size(); ++i)
    points[i].loss = i < 104 ? 6 : 6 - 0.45 * static_cast<double>(i - 104);
  const auto found = find_rate(points);
  ASSERT_TRUE(found);
  EXPECT_NEAR(std::log10(found->steepest), -2, 0.18);
  EXPECT_LT(found->lowest_rate, points[96].rate);
}

TEST(RangeTest, WithoutADescentThereIsNothing) {
  EXPECT_FALSE(find_rate(points_of([](double x) { return 2 + std::exp(x); })));
  EXPECT_FALSE(find_rate({}));
  auto few = points_of(usual);
  few.resize(9);
  EXPECT_FALSE(find_rate(few));
}

/// Errors from -0.25 to 0.25, equally distributed and the same on every machine, without any descent.
TEST(RangeTest, NothingIsSuggestedWithinTheScatter) {
  std::mt19937 random(5);
  int suggested = 0;
  for (const Index steps : {20, 30, 60, 100})
    for (int test = 0; test < 25; ++test) {
      const RateRamp ramp{.low = 1e-5, .high = 10, .steps = steps};
      std::vector<RangePoint> points;
      for (Index i = 0; i < steps; ++i)
        points.push_back({ramp.rate(i), 2.3 + static_cast<double>(random()) / 0x1p33 - 0.25});
      const auto found = find_rate(points);
      suggested += found && found->doubt == Doubt::none ? 1 : 0;
    }
  EXPECT_EQ(suggested, 0);
}

TEST(RangeTest, NothingIsSuggestedAtAnEndOfTheRange) {
  const auto low = find_rate(points_of([](double x) { return 2.3 + std::exp(-3 * (x + 6)); }, 0.01));
  ASSERT_TRUE(low);
  EXPECT_EQ(low->doubt, Doubt::low_end);
  const auto high = find_rate(points_of([](double x) { return 2.3 - std::exp(2 * (x - 1)); }, 0.01));
  ASSERT_TRUE(high);
  EXPECT_EQ(high->doubt, Doubt::high_end);
}

TEST(RangeTest, SmoothingKeepsLinesAndRemovesAlternation) {
  const auto line = [](double x) { return 3 - 0.25 * x; };
  const auto exact = points_of(line);
  const std::vector<double> smoothed = smoothed_losses(points_of(line, 0.13));
  ASSERT_EQ(smoothed.size(), exact.size());
  // Of 25 alternating errors one is left, so a mean is off by 0.13 / 25.
  for (std::size_t i = 12; i + 12 < exact.size(); ++i) EXPECT_NEAR(smoothed[i], exact[i].loss, 0.0053);
}

}  // namespace
}  // namespace convoy
