// SPDX-License-Identifier: Apache-2.0
#include "data/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/errors.hpp"

namespace convoy {
namespace {

struct Case {
  Index samples, batch;
  int replicas;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Index samples : {1, 2, 3, 7, 31, 32, 33, 64, 127, 203, 1000, 1003}) {
    for (const int replicas : {1, 2, 3, 4, 7, 8}) {
      for (const Index batch : {1, 7, 32}) all.push_back({samples, batch, replicas});
    }
  }
  return all;
}

OrderSpec spec_of(const Case& c, Shuffle shuffle) {
  return {.samples = c.samples, .replicas = c.replicas, .batch = c.batch, .seed = 11, .shuffle = shuffle, .buffer = 16};
}

const char* shuffle_name(Shuffle shuffle) {
  return shuffle == Shuffle::global ? "global" : shuffle == Shuffle::buffered ? "buffered" : "partition";
}

std::string name(const Case& c, Shuffle shuffle) {
  return fmt::format("{} samples, {} replicas of {}, {}", c.samples, c.replicas, c.batch, shuffle_name(shuffle));
}

class EveryShuffle : public testing::TestWithParam<Shuffle> {};
INSTANTIATE_TEST_SUITE_P(Order, EveryShuffle, testing::Values(Shuffle::partition, Shuffle::buffered, Shuffle::global),
                         [](const auto& shuffle) { return shuffle_name(shuffle.param); });

TEST_P(EveryShuffle, UsesEverySampleOnceAtPositionsOfItsOwn) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(name(c, GetParam()));
    const EpochOrder order(spec_of(c, GetParam()), 3, 0, c.replicas);
    std::vector<int> used(static_cast<std::size_t>(c.samples)), placed(used);
    for (Index step = 0; step < order.steps(); ++step) {
      for (int r = 0; r < c.replicas; ++r) {
        for (Index i = 0; i < order.count(step, r); ++i) {
          ++used.at(static_cast<std::size_t>(order.sample(step, r, i)));
          ++placed.at(static_cast<std::size_t>(order.position(step, r, i)));
        }
      }
    }
    EXPECT_EQ(std::count(used.begin(), used.end(), 1), c.samples);
    EXPECT_EQ(std::count(placed.begin(), placed.end(), 1), c.samples);
  }
}

TEST_P(EveryShuffle, SharesOfAStepDifferByAtMostOneAndOnlyTheLastStepIsShort) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(name(c, GetParam()));
    const EpochOrder order(spec_of(c, GetParam()), 0, 0, c.replicas);
    EXPECT_EQ(steps_of_epoch(spec_of(c, GetParam())), order.steps());
    std::set<Index> sizes;
    for (Index step = 0; step < order.steps(); ++step) {
      std::vector<Index> shares;
      shares.reserve(static_cast<std::size_t>(c.replicas));
      for (int r = 0; r < c.replicas; ++r) shares.push_back(order.count(step, r));
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      EXPECT_LE(*most - *least, 1);
      EXPECT_LE(*most, c.batch);
      EXPECT_GT(*most, 0) << "an empty step";
      EXPECT_TRUE(*least == c.batch || step + 1 == order.steps());
      Index total = 0;
      for (const Index share : shares) total += share;
      EXPECT_EQ(order.total(step), total);
      sizes.insert(shares.begin(), shares.end());
    }
    sizes.erase(0);
    EXPECT_EQ(batch_sizes(spec_of(c, GetParam())), std::vector<Index>(sizes.rbegin(), sizes.rend()));
  }
}

TEST_P(EveryShuffle, DoesNotDependOnWhichReplicasARankOwns) {
  const Case c{203, 7, 8};
  const EpochOrder whole(spec_of(c, GetParam()), 5, 0, c.replicas);
  for (int first = 0; first < c.replicas; ++first) {
    for (int count = 1; first + count <= c.replicas; ++count) {
      const EpochOrder part(spec_of(c, GetParam()), 5, first, count);
      const Range range = sample_range(spec_of(c, GetParam()), first, count);
      ASSERT_EQ(part.steps(), whole.steps());
      for (Index step = 0; step < whole.steps(); ++step) {
        for (int r = 0; r < c.replicas; ++r) ASSERT_EQ(part.count(step, r), whole.count(step, r));
        for (int r = first; r < first + count; ++r) {
          for (Index i = 0; i < part.count(step, r); ++i) {
            ASSERT_EQ(part.sample(step, r, i), whole.sample(step, r, i));
            ASSERT_EQ(part.position(step, r, i), whole.position(step, r, i));
            ASSERT_TRUE(range.contains(part.sample(step, r, i)));
          }
        }
      }
    }
  }
}

TEST_P(EveryShuffle, DependsOnSeedAndEpoch) {
  const auto first_batch = [&](std::uint64_t seed, Index epoch) {
    OrderSpec spec = spec_of({1000, 100, 1}, GetParam());
    spec.seed = seed;
    const EpochOrder order(spec, epoch, 0, 1);
    std::vector<Index> samples;
    for (Index i = 0; i < 100; ++i) samples.push_back(order.sample(0, 0, i));
    return samples;
  };
  EXPECT_EQ(first_batch(1, 0), first_batch(1, 0));
  EXPECT_NE(first_batch(1, 0), first_batch(1, 1));
  EXPECT_NE(first_batch(1, 0), first_batch(2, 0));
}

// 4000 epochs of 4 samples: each of the 24 orders about 167 times; chi-squared with 23 degrees of freedom passes 58
// once in 10,000 seeds.
TEST_P(EveryShuffle, AllPermutationsAreEquallyLikely) {
  constexpr int epochs = 4000;
  std::map<std::vector<Index>, int> seen;
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    const EpochOrder order(spec_of({4, 4, 1}, GetParam()), epoch, 0, 1);
    ++seen[{order.sample(0, 0, 0), order.sample(0, 0, 1), order.sample(0, 0, 2), order.sample(0, 0, 3)}];
  }
  ASSERT_EQ(seen.size(), 24U);
  double chi_squared = 0;
  for (const auto& [permutation, count] : seen) {
    chi_squared += (count - epochs / 24.0) * (count - epochs / 24.0) / (epochs / 24.0);
  }
  EXPECT_LT(chi_squared, 58);
}

TEST(PartitionOrder, ReplicasPermuteContiguousRangesOfTheirOwn) {
  const OrderSpec spec = spec_of({1003, 32, 4}, Shuffle::partition);
  const EpochOrder order(spec, 0, 0, 4);
  ASSERT_EQ(order.steps(), 8);
  const Index begin[] = {0, 251, 502, 753}, count[] = {251, 251, 251, 250}, last[] = {27, 27, 27, 26};
  std::set<std::vector<Index>> patterns;
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(sample_range(spec, r, 1), (Range{begin[r], count[r]}));
    EXPECT_EQ(order.count(6, r), 32);
    EXPECT_EQ(order.count(7, r), last[r]);
    std::vector<Index> pattern;
    for (Index step = 0; step < 8; ++step) {
      for (Index i = 0; i < order.count(step, r); ++i) {
        EXPECT_EQ(order.position(step, r, i), begin[r] + step * 32 + i);
        pattern.push_back(order.sample(step, r, i) - begin[r]);
      }
    }
    patterns.insert(pattern);
  }
  EXPECT_EQ(patterns.size(), 4U) << "two replicas permute alike";
  EXPECT_EQ(sample_range(spec, 1, 2), (Range{251, 502}));
  EXPECT_EQ(batch_sizes(spec), (std::vector<Index>{32, 27, 26}));
}

// Only W * B matters: the same samples at the same positions in every step, so that they are augmented alike.
TEST(GlobalOrder, ManySmallReplicasTakeWhatOneLargeTakes) {
  for (const Index samples : {7, 203, 1003}) {
    for (const EpochMode mode : {EpochMode::exact, EpochMode::resample}) {
      for (const int replicas : {2, 3, 4, 6}) {
        OrderSpec many = spec_of({samples, 8, replicas}, Shuffle::global),
                  one = spec_of({samples, 8 * replicas, 1}, Shuffle::global);
        many.mode = one.mode = mode;
        const EpochOrder small(many, 2, 0, replicas), large(one, 2, 0, 1);
        ASSERT_EQ(small.steps(), large.steps());
        for (Index step = 0; step < large.steps(); ++step) {
          std::map<Index, Index> by_position, expected;
          for (int r = 0; r < replicas; ++r) {
            for (Index i = 0; i < small.count(step, r); ++i)
              by_position[small.position(step, r, i)] = small.sample(step, r, i);
          }
          for (Index i = 0; i < large.count(step, 0); ++i)
            expected[large.position(step, 0, i)] = large.sample(step, 0, i);
          ASSERT_EQ(by_position, expected) << samples << " samples, " << replicas << " replicas, step " << step;
          ASSERT_EQ(small.total(step), large.total(step));
        }
      }
    }
  }
}

TEST(BufferedOrder, TakesPieceAfterPieceInRandomOrder) {
  OrderSpec spec = spec_of({3 * 70, 8, 3}, Shuffle::buffered);
  spec.buffer = 16;  // a replica's 70 samples: pieces of 16, 16, 16, 16, 6
  const EpochOrder order(spec, 2, 1, 2);
  std::vector<Index> begins;
  int moved = 0;
  for (Index first = 0; first < 70; first += 16) {
    const Range piece = order.piece(1, first);
    EXPECT_EQ(piece.count, first < 64 ? 16 : 6);
    EXPECT_EQ((piece.begin - 70) % 16, 0);
    begins.push_back(piece.begin);
    for (Index i = first; i < first + piece.count; ++i) {
      const Index sample = order.sample(i / 8, 1, i % 8);
      EXPECT_TRUE(piece.contains(sample)) << sample;
      moved += sample != piece.begin + i - first ? 1 : 0;
    }
  }
  EXPECT_EQ(order.piece(1, 80).count, 0);
  EXPECT_GT(moved, 50) << "shuffled within pieces";
  std::map<Index, int> first_pieces;
  for (Index epoch = 0; epoch < 400; ++epoch) ++first_pieces[EpochOrder(spec, epoch, 1, 2).piece(1, 0).begin];
  for (const Index begin : {70, 86, 102, 118}) EXPECT_NEAR(first_pieces[begin], 100, 40) << "pieces take turns";
  std::sort(begins.begin(), begins.end());
  EXPECT_EQ(begins, (std::vector<Index>{70, 86, 102, 118, 134}));
  EXPECT_EQ(sample_range(spec, 1, 1), (Range{70, 70})) << "a rank reads its own part alone";
}

TEST(GlobalOrder, EveryRankReadsEverySample) {
  const OrderSpec spec = spec_of({203, 7, 8}, Shuffle::global);
  EXPECT_EQ(sample_range(spec, 5, 1), (Range{0, 203}));
  EXPECT_EQ(sample_range(spec, 5, 0), (Range{0, 0}));
}

TEST_P(EveryShuffle, RepeatedSamplesStandSideBySideAtPositionsOfTheirOwn) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(name(c, GetParam()));
    OrderSpec spec = spec_of(c, GetParam());
    spec.repeats = 3;
    if (c.samples < c.replicas) continue;
    const EpochOrder order(spec, 1, 0, c.replicas);
    std::map<Index, int> seen;
    std::set<Index> positions;
    for (Index step = 0; step < order.steps(); ++step) {
      for (int r = 0; r < c.replicas; ++r) {
        for (Index i = 0; i < order.count(step, r); ++i) {
          ++seen[order.sample(step, r, i)];
          positions.insert(order.position(step, r, i));
        }
      }
    }
    EXPECT_EQ(static_cast<Index>(positions.size()), c.samples);
    int incomplete = 0;
    for (const auto& [sample, times] : seen) {
      EXPECT_LE(times, 3);
      incomplete += times < 3 ? 1 : 0;
    }
    EXPECT_LE(incomplete, GetParam() == Shuffle::global ? 1 : c.replicas) << "only the last of a range is cut short";
  }
}

TEST_P(EveryShuffle, UnshuffledIsTheNaturalOrder) {
  OrderSpec spec = spec_of({10, 4, 1}, GetParam());
  spec.shuffled = false;
  const EpochOrder order(spec, 7, 0, 1);
  ASSERT_EQ(order.steps(), 3);
  for (Index n = 0; n < 10; ++n) EXPECT_EQ(order.sample(n / 4, 0, n % 4), n);
}

TEST(Order, AnEmptySetIsADataError) {
  try {
    EpochOrder order(spec_of({0, 4, 1}, Shuffle::partition), 0, 0, 1);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data);
  }
}

}  // namespace
}  // namespace convoy
