// SPDX-License-Identifier: Apache-2.0
#include "data/shapes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace convoy {
namespace {

TEST(Rectangles, KeepTheRatioInMultiplesOfEight) {
  EXPECT_EQ(rectangle_of({500, 500}, 224), (ImageSize{224, 224}));
  EXPECT_EQ(rectangle_of({375, 500}, 224), (ImageSize{224, 296})) << "298.7";
  EXPECT_EQ(rectangle_of({500, 375}, 224), (ImageSize{296, 224}));
  EXPECT_EQ(rectangle_of({500, 499}, 224), (ImageSize{224, 224}));
  EXPECT_EQ(rectangle_of({100, 1000}, 224), (ImageSize{224, 448})) << "at most twice as long";
  EXPECT_EQ(rectangle_of({1, 7}, 36), (ImageSize{36, 72}));
  EXPECT_EQ(rectangle_of({50, 50}, 36), (ImageSize{36, 36})) << "the short side is as it is asked for";
}

TEST(Rectangles, RanksShareSortedSamplesEvenly) {
  const std::vector<ShapeGroup> groups = {{{8, 16}, {4, 9}}, {{8, 8}, {0, 1, 2, 3, 5}}, {{16, 8}, {6, 7, 8}}};
  for (const int ranks : {1, 2, 3, 7, 12}) {
    std::set<Index> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      std::size_t own = 0;
      for (const ShapeGroup& group : share_of(groups, ranks, rank)) {
        EXPECT_FALSE(group.samples.empty());
        own += group.samples.size();
        for (const Index id : group.samples) EXPECT_TRUE(seen.insert(id).second) << id << " twice";
      }
      EXPECT_NEAR(static_cast<double>(own), 10.0 / ranks, 1);
    }
    EXPECT_EQ(seen.size(), 10U) << ranks << " ranks";
  }
  const auto second = share_of(groups, 2, 1);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].samples, (std::vector<Index>{3, 5}));
  EXPECT_EQ(second[1].samples, (std::vector<Index>{6, 7, 8}));
  EXPECT_EQ(count_batches(groups, 4), 1 + 2 + 1);
  EXPECT_EQ(count_batches(second, 2), 1 + 2);
}

}  // namespace
}  // namespace convoy
