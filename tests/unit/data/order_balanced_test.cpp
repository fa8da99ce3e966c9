// SPDX-License-Identifier: Apache-2.0
// Balanced epochs: 3 classes of 70, 24 and 6 samples, and one sample of no class.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "data/order.hpp"

namespace convoy {
namespace {

constexpr Index draws = 101 / 3;

std::vector<std::int32_t> labels() {
  std::vector<std::int32_t> labels;
  for (Index i = 0; i < 101; ++i) labels.push_back(i == 50 ? -1 : i % 17 == 3 ? 4 : i % 4 == 1 ? 2 : 0);
  return labels;
}

OrderSpec spec_of(int replicas, Index batch) {
  OrderSpec spec{.replicas = replicas, .batch = batch, .seed = 7, .shuffle = Shuffle::global};
  spec.classes = std::make_shared<const ClassLists>(labels());
  spec.samples = spec.classes->classes() * spec.classes->draws();
  return spec;
}

/// What `ranks` ranks draw together, in the order of the epoch's positions.
std::vector<Index> drawn(const OrderSpec& spec, Index epoch, int ranks) {
  std::vector<Index> all(static_cast<std::size_t>(spec.samples), -1);
  for (int rank = 0; rank < ranks; ++rank) {
    const int first = spec.replicas * rank / ranks, end = spec.replicas * (rank + 1) / ranks;
    const EpochOrder order(spec, epoch, first, end - first);
    for (Index step = 0; step < order.steps(); ++step)
      for (int replica = first; replica < end; ++replica)
        for (Index i = 0; i < order.count(step, replica); ++i) {
          Index& at = all[static_cast<std::size_t>(order.position(step, replica, i))];
          EXPECT_EQ(at, -1) << "a position is drawn twice";
          at = order.sample(step, replica, i);
        }
  }
  return all;
}

TEST(BalancedOrder, AnEpochDrawsEachClassEquallyOften) {
  for (const auto& [replicas, batch] : {std::pair{1, Index{8}}, {4, 5}, {3, 33}}) {
    const OrderSpec spec = spec_of(replicas, batch);
    EXPECT_EQ(spec.samples, 3 * draws);
    for (const Index epoch : {0, 1, 5}) {
      std::map<std::int32_t, Index> times;
      for (const Index sample : drawn(spec, epoch, 1)) ++times[labels()[static_cast<std::size_t>(sample)]];
      EXPECT_EQ(times, (std::map<std::int32_t, Index>{{0, draws}, {2, draws}, {4, draws}}));
    }
  }
}

TEST(BalancedOrder, RanksMakeNoDifference) {
  const OrderSpec spec = spec_of(4, 6);
  const std::vector<Index> one = drawn(spec, 3, 1);
  EXPECT_EQ(drawn(spec, 3, 2), one);
  EXPECT_EQ(drawn(spec, 3, 4), one);
  EXPECT_NE(drawn(spec, 4, 1), one);
  EXPECT_EQ(sample_range(spec, 1, 2), (Range{0, 101})) << "a rank reads samples of all the set";
}

/// Over the epochs, samples of one class are drawn equally often, but for the round that is under way.
TEST(BalancedOrder, AClassGoesThroughAllItsSamplesBeforeAnyComesAgain) {
  const OrderSpec spec = spec_of(2, 10);
  std::map<Index, Index> times;
  for (Index epoch = 0; epoch < 7; ++epoch) {
    for (const Index sample : drawn(spec, epoch, 1)) ++times[sample];
    std::map<std::int32_t, std::pair<Index, Index>> range;  // fewest, most
    for (Index i = 0; i < 101; ++i) {
      const std::int32_t label = labels()[static_cast<std::size_t>(i)];
      const auto [at, fresh] = range.emplace(label, std::pair(times[i], times[i]));
      at->second = {std::min(at->second.first, times[i]), std::max(at->second.second, times[i])};
    }
    EXPECT_EQ(range[-1].second, 0) << "a sample of no class is never drawn";
    for (const std::int32_t label : {0, 2, 4}) EXPECT_LE(range[label].second - range[label].first, 1) << label;
  }
  EXPECT_GE(times[3], 7 * draws / 6) << "the class of 6 goes round often";
}

TEST(BalancedOrder, MixesTheClasses) {
  const std::vector<Index> order = drawn(spec_of(1, 9), 0, 1);
  Index same = 0;
  for (std::size_t i = 1; i < order.size(); ++i)
    same += labels()[static_cast<std::size_t>(order[i])] == labels()[static_cast<std::size_t>(order[i - 1])] ? 1 : 0;
  // 98 pairs of neighbours, of which a third have one class: 32.7, with a deviation of 4.7. In order they were 96.
  EXPECT_NEAR(static_cast<double>(same), 98 / 3.0, 5 * 4.7);
}

TEST(BalancedOrder, FewSamplesOfManyClassesAreDrawnOnceEach) {
  const std::vector<std::int32_t> few{5, 0, 9};
  const ClassLists lists{few};
  EXPECT_EQ(lists.classes(), 3);
  EXPECT_EQ(lists.draws(), 1);
}

}  // namespace
}  // namespace convoy
