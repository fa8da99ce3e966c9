// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "core/errors.hpp"
#include "data/order.hpp"

namespace convoy {
namespace {

OrderSpec spec_of(Index samples, int replicas, Index batch, Shuffle shuffle) {
  return {.samples = samples,
          .replicas = replicas,
          .batch = batch,
          .seed = 4,
          .shuffle = shuffle,
          .mode = EpochMode::resample};
}

TEST(Resample, EveryStepIsFullAndEveryDrawLiesInItsRange) {
  for (const Shuffle shuffle : {Shuffle::partition, Shuffle::global}) {
    for (const Index samples : {8, 31, 203, 1003}) {
      for (const int replicas : {1, 3, 8}) {
        const OrderSpec spec = spec_of(samples, replicas, 8, shuffle);
        const EpochOrder order(spec, 1, 0, replicas);
        EXPECT_EQ(order.steps(), std::max<Index>(1, samples / (replicas * 8)));
        EXPECT_EQ(batch_sizes(spec), std::vector<Index>{8});
        std::set<Index> positions;
        for (Index step = 0; step < order.steps(); ++step) {
          EXPECT_EQ(order.total(step), 8 * replicas);
          for (int r = 0; r < replicas; ++r) {
            ASSERT_EQ(order.count(step, r), 8);
            const Range range = sample_range(spec, r, 1);
            for (Index i = 0; i < 8; ++i) {
              ASSERT_TRUE(range.contains(order.sample(step, r, i)));
              ASSERT_TRUE(positions.insert(order.position(step, r, i)).second) << "a position twice";
            }
          }
        }
      }
    }
  }
}

// Of 1000 draws from 1000 samples about 1000 (1 - 1/e) = 632 are different; the standard deviation is 9.9.
TEST(Resample, DrawsWithReplacement) {
  for (const Shuffle shuffle : {Shuffle::partition, Shuffle::global}) {
    const EpochOrder order(spec_of(1000, 1, 100, shuffle), 0, 0, 1), next(spec_of(1000, 1, 100, shuffle), 1, 0, 1);
    std::set<Index> different;
    int equal_in_next_epoch = 0;
    for (Index step = 0; step < 10; ++step) {
      for (Index i = 0; i < 100; ++i) {
        different.insert(order.sample(step, 0, i));
        equal_in_next_epoch += order.sample(step, 0, i) == next.sample(step, 0, i);
      }
    }
    EXPECT_NEAR(static_cast<double>(different.size()), 632, 45);
    EXPECT_LT(equal_in_next_epoch, 10);
  }
}

TEST(Resample, DoesNotDependOnWhichReplicasARankOwns) {
  const OrderSpec spec = spec_of(203, 4, 8, Shuffle::partition);
  const EpochOrder whole(spec, 1, 0, 4);
  for (int r = 0; r < 4; ++r) {
    const EpochOrder own(spec, 1, r, 1);
    for (Index step = 0; step < whole.steps(); ++step) {
      for (Index i = 0; i < 8; ++i) ASSERT_EQ(own.sample(step, r, i), whole.sample(step, r, i));
    }
  }
}

TEST(Resample, AReplicaWithoutSamplesIsAUsageError) {
  try {
    EpochOrder order(spec_of(3, 4, 8, Shuffle::partition), 0, 0, 4);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
  }
  EXPECT_EQ(EpochOrder(spec_of(3, 4, 8, Shuffle::global), 0, 0, 4).steps(), 1);
}

}  // namespace
}  // namespace convoy
