// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "data/loader.hpp"
#include "support/allocations.hpp"

namespace convoy {
namespace {

TEST(LoaderAllocations, NoneInTheSteadyState) {
  const SyntheticSpec images{.samples = 400, .height = 8, .width = 8, .classes = 4};
  const Dataset set(images, synthetic_info(images, "train"), {0, images.samples});
  for (const int resident : {0, -1}) {
    LoaderSpec spec;
    spec.order = {.samples = images.samples, .replicas = 2, .batch = 5, .seed = 5};
    spec.augment = {
        .source_height = 8, .source_width = 8, .height = 8, .width = 8, .pad = 2, .flip = Flip::alternating};
    spec.replica_count = 2;
    spec.workers = 3;
    spec.resident = resident;
    Loader loader(set, spec);
    // Each of the three workers makes its room with its first task, however late that comes: of eight epochs at least
    // one is without.
    long before = 0, fewest = std::numeric_limits<long>::max();
    Index taken = 0;
    for (Index epoch = 0; epoch < 8; ++epoch) {
      const EpochOrder& order = loader.begin_epoch(epoch, 0);
      ASSERT_EQ(order.steps(), 40);
      taken = 0;
      for (Index step = 0; step < order.steps(); ++step) {
        if (step == 5) before = count_allocations();
        for (const int r : {0, 1}) taken += loader.next(step, r).valid_count;
        loader.take_wait_seconds();
      }
      fewest = std::min(fewest, count_allocations() - before);
    }
    EXPECT_EQ(fewest, 0);
    EXPECT_GT(before, 0) << "nothing is counted";
    EXPECT_EQ(taken, 400);
  }
}

}  // namespace
}  // namespace convoy
