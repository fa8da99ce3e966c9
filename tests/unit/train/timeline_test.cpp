// SPDX-License-Identifier: Apache-2.0
#include "train/timeline.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

/// 2 epochs of 10 steps, 3 of 4, then of 7.
const Timeline phases({{0, 10}, {2, 4}, {5, 7}});

TEST(Timeline, CountsStepsOverPhases) {
  EXPECT_EQ(phases.first_step(0), 0);
  EXPECT_EQ(phases.first_step(2), 20);
  EXPECT_EQ(phases.first_step(4), 28);
  EXPECT_EQ(phases.first_step(7), 46);
  EXPECT_EQ(phases.steps(1), 10);
  EXPECT_EQ(phases.steps(2), 4);
  EXPECT_EQ(phases.steps(90), 7);
  EXPECT_EQ(phases.phase(4), 1U);
  EXPECT_FALSE(phases.ends_phase(0));
  EXPECT_TRUE(phases.ends_phase(1));
  EXPECT_TRUE(phases.ends_phase(4));
  EXPECT_FALSE(phases.ends_phase(5));
}

TEST(Timeline, StepsAndEpochsAreInverse) {
  for (Index step = 0; step < 80; ++step) {
    EXPECT_EQ(phases.step(phases.epochs(step)), step);
    const Index epoch = phases.epoch_of(step);
    EXPECT_LE(phases.first_step(epoch), step);
    EXPECT_LT(step, phases.first_step(epoch + 1));
    if (step > 0) {
      EXPECT_GT(phases.even_step(step), phases.even_step(step - 1));
    }
  }
  EXPECT_DOUBLE_EQ(phases.epochs(22), 2.5);
  EXPECT_DOUBLE_EQ(phases.even_step(22), 25);
  EXPECT_EQ(phases.step(1.25), 13) << "12.5, rounded away from zero";
}

TEST(Timeline, OfOnePhaseIsTheStepItself) {
  const Timeline plain({{0, 37}});
  for (const Index step : {0, 1, 36, 37, 38, 123456789}) {
    EXPECT_EQ(plain.even_step(step), static_cast<double>(step));
    EXPECT_EQ(plain.epoch_of(step), step / 37);
  }
}

TEST(Timeline, SaysWhereAnIntervalOfEpochsEnds) {
  const Timeline timeline({{.begin_epoch = 0, .steps_per_epoch = 4}});
  std::vector<Index> halves, pairs;
  for (Index step = 0; step <= 16; ++step) {
    if (timeline.is_due(0.5, step)) halves.push_back(step);
    if (timeline.is_due(2, step)) pairs.push_back(step);
    EXPECT_FALSE(timeline.is_due(0, step));
  }
  EXPECT_EQ(halves, (std::vector<Index>{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(pairs, (std::vector<Index>{8, 16}));
}

}  // namespace
}  // namespace convoy
