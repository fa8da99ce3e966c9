// SPDX-License-Identifier: Apache-2.0
#include "train/spike_history.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(SpikeHistory, BoundIsAMultipleOfTheMedian) {
  SpikeHistory history(3, 0);
  for (const double value : {5.0, 1.0, 4.0, 2.0}) history.add(value);
  EXPECT_FALSE(history.exceeded(1e9).has_value()) << "four intervals say nothing";
  history.add(3);
  EXPECT_FALSE(history.exceeded(9).has_value()) << "three times the median is none yet";
  EXPECT_EQ(history.exceeded(9.001), 9.0);
}

TEST(SpikeHistory, ForgetsWhatIsOlderThanTheWindow) {
  SpikeHistory history(2, 0);
  for (int i = 0; i < 20; ++i) history.add(100);
  for (int i = 0; i < 11; ++i) history.add(1);  // of 20, 9 are old
  EXPECT_EQ(history.exceeded(3), 2.0);
}

TEST(SpikeHistory, NothingBelowTheFloorIsASpike) {
  SpikeHistory history(5, 1);
  for (int i = 0; i < 6; ++i) history.add(0.01);
  EXPECT_FALSE(history.exceeded(1).has_value());
  EXPECT_EQ(history.exceeded(1.1), 1.0);
}

TEST(SpikeHistory, ComesBackFromACheckpoint) {
  SpikeHistory history(3, 0), loaded(3, 0);
  for (int i = 0; i < 27; ++i) history.add(i);
  std::map<std::string, double> numbers, again;
  history.write("spike_loss", numbers);
  EXPECT_EQ(numbers.size(), 20U);
  EXPECT_EQ(numbers.at("spike_loss_0"), 7) << "oldest first";
  loaded.add(99);
  loaded.read("spike_loss", numbers);
  loaded.write("spike_loss", again);
  EXPECT_EQ(numbers, again);
  history.add(5);
  loaded.add(5);
  EXPECT_EQ(history.exceeded(1e6), loaded.exceeded(1e6));
}

}  // namespace
}  // namespace convoy
