// SPDX-License-Identifier: Apache-2.0
// Sums of small integers are exact in float in any order, so they are compared with ==; the tree's by bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/random.hpp"
#include "core/replicas.hpp"
#include "cuda/nccl/nccl_job.hpp"
#include "support/bucket_step.hpp"

namespace convoy {
namespace {

constexpr int replicas = 5;

/// Magnitudes over eight decades, so that the order of additions shows in the bits.
float leaf(int replica, Index i) {
  Random random(7, Stream::synthetic, static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(i));
  return static_cast<float>(random.normal() * std::pow(10.0, 8 * random.uniform() - 4));
}
float tree(int first, int count, Index i) {
  if (count == 1) return leaf(first, i);
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return tree(first, lower, i) + tree(first + lower, count - lower, i);
}

class NcclSumsTest : public testing::TestWithParam<Progress> {
 protected:
  NcclTestJob job{GetParam()};
};

TEST_P(NcclSumsTest, SumsAllPartsOfAllRanks) {
  for (const bool reproducible : {false, true}) {
    job.start({.replicas = replicas, .reproducible = reproducible, .max_count = 333});
    EXPECT_TRUE(job.sums->capturable());
    BucketStep step(*job.sums, job.device, {replicas, ranks().size(), ranks().rank(), reproducible});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(step.run(i), 0) << "step " << i;
  }
}

TEST_P(NcclSumsTest, GivesTheBitsOfTheTree) {
  for (const int leaves : {1, 2, 4, 6, 7}) {
    job.start({.replicas = leaves, .reproducible = true, .max_count = 250});
    for (const Index count : {0, 1, 7, 250}) {
      std::vector<Part> parts;
      for (const TreeNode& node : tree_nodes(deal_replicas(leaves, ranks().size(), ranks().rank()))) {
        parts.push_back({node.first, node.size, job.device.allocate(count)});
        for (Index i = 0; i < count; ++i) parts.back().data[i] = tree(node.first, node.size, i);
      }
      float* const out = parts.empty() ? job.device.allocate(count) : parts.back().data;
      job.sums->finish(job.sums->submit({out, parts, count, job.device.record(), "reproducible sum"}));
      job.sums->await(job.device.record(), "reproducible sum");
      for (Index i = 0; i < count; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(tree(0, leaves, i)))
            << i << " of " << leaves << " leaves";
    }
  }
}

float rounded_tree(int first, int count, Index i, Wire wire) {
  const auto rounded = [wire](float value) { return widened(narrowed(value, wire), wire); };
  if (count == 1) return rounded(leaf(first, i));
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return rounded(rounded_tree(first, lower, i, wire) + rounded_tree(first + lower, count - lower, i, wire));
}

TEST_P(NcclSumsTest, GivesTheBitsOfTheTreeIn16Bits) {
  for (const Wire wire : {Wire::bf16, Wire::fp16})
    for (const int leaves : {1, 2, 6, 7}) {
      job.start({.replicas = leaves, .reproducible = true, .max_count = 250, .wire = wire});
      for (const Index count : {1, 7, 250}) {
        std::vector<Part> parts;
        for (const TreeNode& node : tree_nodes(deal_replicas(leaves, ranks().size(), ranks().rank()))) {
          parts.push_back({node.first, node.size, job.device.allocate(count)});
          for (Index i = 0; i < count; ++i) parts.back().data[i] = rounded_tree(node.first, node.size, i, wire);
        }
        float* const out = parts.empty() ? job.device.allocate(count) : parts.back().data;
        job.sums->finish(job.sums->submit({out, parts, count, job.device.record(), "sum", wire}));
        job.sums->await(job.device.record(), "sum");
        for (Index i = 0; i < count; ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
                    std::bit_cast<std::uint32_t>(rounded_tree(0, leaves, i, wire)))
              << i << " of " << leaves << " leaves";
      }
    }
}

/// Without --reproducible: each rank's sum is rounded once, they are added in fp32, the result is rounded once.
TEST_P(NcclSumsTest, AddsTheSumsOfTheRanksInFp32) {
  const int size = ranks().size();
  if (size == 1) GTEST_SKIP() << "nothing travels";
  const auto rounded = [](float value) { return from_fp16(to_fp16(value)); };
  job.start({.replicas = 2 * size, .max_count = 250, .wire = Wire::fp16});
  float *first = job.device.allocate(250), *second = job.device.allocate(250);
  const int own = 2 * ranks().rank();
  for (Index i = 0; i < 250; ++i) {
    first[i] = leaf(own, i);
    second[i] = leaf(own + 1, i);
  }
  const std::vector<Part> parts{{own, 1, first}, {own + 1, 1, second}};
  job.sums->finish(job.sums->submit({second, parts, 250, job.device.record(), "sum", Wire::fp16}));
  job.sums->await(job.device.record(), "sum");
  const auto of_rank = [&](int rank, Index i) { return rounded(leaf(2 * rank + 1, i) + leaf(2 * rank, i)); };
  for (Index i = 0; i < 250; ++i) {
    float sum = of_rank(0, i) + of_rank(1, i);
    if (size == 3) sum += of_rank(2, i);
    ASSERT_EQ(second[i], rounded(sum)) << i;
  }
}

std::string name_of(const testing::TestParamInfo<Progress>& one) {
  constexpr const char* names[] = {"lazy", "ahead", "eager"};
  return names[static_cast<std::size_t>(one.param)];
}
INSTANTIATE_TEST_SUITE_P(Orders, NcclSumsTest, testing::Values(Progress::lazy, Progress::ahead, Progress::eager),
                         name_of);

/// CONVOY_NCCL_ALONE: a machine with one GPU runs NCCL's sums, within captured steps too.
TEST(NcclAloneTest, OneRankSumsByNccl) {
  if (ranks().size() > 1) GTEST_SKIP() << "for one rank";
  setenv("CONVOY_NCCL_ALONE", "1", 1);
  for (const bool reproducible : {false, true}) {
    NcclTestJob job(Progress::lazy);
    job.start({.replicas = replicas, .reproducible = reproducible, .max_count = 333});
    BucketStep step(*job.sums, job.device, {replicas, 1, 0, reproducible});
    EXPECT_EQ(step.run(0), 0);
    const std::string wanted = reproducible ? "ncclBroadcast " : "ncclAllReduce ";
    const auto& calls = host_nccl::calls();
    EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&](const auto& call) { return call.starts_with(wanted); }))
        << wanted;
  }
  unsetenv("CONVOY_NCCL_ALONE");
}

/// Wrong values on some rank in two steps without one of the waits; -1: with all of them.
std::int64_t wrong_without(int wait, Progress progress, bool reproducible, int& waits) {
  NcclTestJob job(progress);
  job.start({.replicas = replicas, .reproducible = reproducible, .max_count = 333});
  job.device.forgotten_follow = wait;
  BucketStep step(*job.sums, job.device, {replicas, ranks().size(), ranks().rank(), reproducible});
  std::int64_t wrong = 0;
  for (int i = 0; i < 2; ++i) wrong += step.run(i);
  waits = job.device.follows;
  ranks().maximum(std::span(&wrong, 1), "wrong values");
  return wrong;
}

TEST(NcclWaitsTest, EachIsNeeded) {
  for (const bool reproducible : {false, true}) {
    int waits = 0;
    for (const Progress progress : {Progress::lazy, Progress::ahead})
      EXPECT_EQ(wrong_without(-1, progress, reproducible, waits), 0);
    EXPECT_EQ(waits, ranks().size() == 1 ? 0 : 8) << "two for each of two buckets in two steps";
    for (int wait = 0, same = 0; wait < waits; ++wait) {
      // Whether a sum that nobody waits for is late depends on when the other ranks come to it.
      std::int64_t wrong = 0;
      for (int attempt = 0; attempt < 10 && wrong == 0; ++attempt) {
        for (const Progress progress : {Progress::lazy, Progress::ahead})
          wrong += wrong_without(wait, progress, reproducible, same);
      }
      EXPECT_GT(wrong, 0) << "wait " << wait << (reproducible ? " of the tree" : "");
    }
  }
}

/// What NCCL is asked for, call by call.
TEST(NcclCallsTest, OneSumIsOneCall) {
  NcclTestJob job(Progress::eager);
  job.start({.replicas = ranks().size(), .max_count = 100});
  float* const data = job.device.allocate(100);
  const Part part{ranks().rank(), 1, data};
  for (const Index count : {100, 0, 64})
    job.sums->finish(job.sums->submit({data, std::span(&part, 1), count, job.device.record(), "sum"}));
  job.sums->await(job.device.record(), "sums");
  using Calls = std::vector<std::string>;
  EXPECT_EQ(host_nccl::calls(), ranks().size() == 1 ? Calls{} : (Calls{"ncclAllReduce 100", "ncclAllReduce 64"}));
}

TEST(NcclCallsTest, ATreeIsTwoGroups) {
  if (ranks().size() != 2) GTEST_SKIP() << "written down for two ranks";
  NcclTestJob job(Progress::eager);
  job.start({.replicas = 3, .reproducible = true, .max_count = 100});
  // Rank 0 owns the node (0 1), rank 1 the leaf 2; slices are 64 and 36 floats long.
  float* const data = job.device.allocate(100);
  const bool first = ranks().rank() == 0;
  const Part part{first ? 0 : 2, first ? 2 : 1, data};
  job.sums->finish(job.sums->submit({data, std::span(&part, 1), 100, job.device.record(), "sum"}));
  job.sums->await(job.device.record(), "sum");
  const std::vector<std::string> spread = {"ncclGroupStart", "ncclBroadcast 64 peer 0", "ncclBroadcast 36 peer 1",
                                           "ncclGroupEnd"};
  std::vector<std::string> wanted = {"ncclGroupStart", first ? "ncclSend 36 peer 1" : "ncclSend 64 peer 0",
                                     first ? "ncclRecv 64 peer 1" : "ncclRecv 36 peer 0", "ncclGroupEnd"};
  wanted.insert(wanted.end(), spread.begin(), spread.end());
  EXPECT_EQ(host_nccl::calls(), wanted);
}

/// A sum in fp32 beside it stays one call of NCCL's.
/// In bf16, whose range no sum of floats passes, NCCL adds itself: within a rounding a rank of the sum.
TEST_P(NcclSumsTest, LeavesSumsInBf16ToNccl) {
  const int size = ranks().size();
  if (size == 1) GTEST_SKIP() << "nothing travels";
  job.start({.replicas = size, .max_count = 250, .wire = Wire::bf16});
  float *first = job.device.allocate(250), *second = job.device.allocate(250);
  for (Index i = 0; i < 250; ++i) first[i] = second[i] = leaf(ranks().rank(), i);
  Ticket last = 0;
  for (const auto& [data, count] : {std::pair{first, Index{250}}, {second, Index{100}}}) {
    const Part part{ranks().rank(), 1, data};
    last = job.sums->submit({data, std::span(&part, 1), count, job.device.record(), "sum", Wire::bf16});
  }
  job.sums->finish(last);
  job.sums->await(job.device.record(), "sum");
  for (Index i = 0; i < 250; ++i) {
    double sum = 0, magnitude = 0;
    for (int r = 0; r < size; ++r) {
      sum += static_cast<double>(leaf(r, i));
      magnitude += std::abs(static_cast<double>(leaf(r, i)));
    }
    ASSERT_NEAR(static_cast<double>(first[i]), sum, (size + 1) * 0x1p-8 * magnitude) << i;
    if (i < 100) {
      ASSERT_EQ(second[i], first[i]);
    }
  }
  EXPECT_EQ(host_nccl::calls(),
            (std::vector<std::string>{"ncclAllReduce 250 of 16 bits", "ncclAllReduce 100 of 16 bits"}));
}

TEST(NcclCallsTest, SixteenBitsGoByATreeOverTheRanks) {
  if (ranks().size() != 2) GTEST_SKIP() << "written down for two ranks";
  NcclTestJob job(Progress::eager);
  job.start({.replicas = 2, .max_count = 100, .wire = Wire::fp16});
  float* const data = job.device.allocate(100);
  const Part part{ranks().rank(), 1, data};
  for (const Wire wire : {Wire::fp16, Wire::fp32})
    job.sums->finish(job.sums->submit({data, std::span(&part, 1), 100, job.device.record(), "sum", wire}));
  job.sums->await(job.device.record(), "sums");
  const bool first = ranks().rank() == 0;
  const std::vector<std::string> wanted = {"ncclGroupStart",
                                           first ? "ncclSend 36 of 16 bits peer 1" : "ncclSend 64 of 16 bits peer 0",
                                           first ? "ncclRecv 64 of 16 bits peer 1" : "ncclRecv 36 of 16 bits peer 0",
                                           "ncclGroupEnd",
                                           "ncclGroupStart",
                                           "ncclBroadcast 64 of 16 bits peer 0",
                                           "ncclBroadcast 36 of 16 bits peer 1",
                                           "ncclGroupEnd",
                                           "ncclAllReduce 100"};
  EXPECT_EQ(host_nccl::calls(), wanted);
}

TEST(NcclCallsTest, RefusesPartsThatAreNotTheNodesOfTheRun) {
  NcclTestJob job(Progress::eager);
  job.start({.replicas = 2 * ranks().size(), .reproducible = true, .max_count = 1});
  float* const data = job.device.allocate(1);
  const Part half{2 * ranks().rank(), 1, data};
  if (ranks().size() > 1) {
    EXPECT_THROW(job.sums->submit({data, std::span(&half, 1), 1, {}, "half"}), Error);
  }
}

}  // namespace
}  // namespace convoy
