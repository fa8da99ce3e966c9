// SPDX-License-Identifier: Apache-2.0
// Reproducible sums: every rank count gives the bits of the tree computed here leaf by leaf.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <tuple>

#include "comm/communicator.hpp"
#include "core/random.hpp"
#include "core/replicas.hpp"
#include "support/host_device.hpp"
#include "support/mpi_main.hpp"
#include "support/queue_device.hpp"

namespace convoy {
namespace {

/// Magnitudes over eight decades, so that the order of additions shows in the bits.
float leaf(int replica, Index i) {
  Random random(7, Stream::synthetic, static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(i));
  return static_cast<float>(random.normal() * std::pow(10.0, 8 * random.uniform() - 4));
}

/// The definition, by halves.
float tree(int first, int count, Index i) {
  if (count == 1) return leaf(first, i);
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return tree(first, lower, i) + tree(first + lower, count - lower, i);
}

TEST(ReplicaTreeTest, CutsRunsIntoTheLargestNodes) {
  EXPECT_EQ(tree_nodes({3, 5}), (std::vector<TreeNode>{{3, 1}, {4, 4}}));
  EXPECT_EQ(tree_nodes({0, 7}), (std::vector<TreeNode>{{0, 4}, {4, 2}, {6, 1}}));
  EXPECT_EQ(tree_nodes({2, 4}), (std::vector<TreeNode>{{2, 2}, {4, 2}}));
  EXPECT_TRUE(tree_nodes({4, 0}).empty());
}

TEST(ReplicaTreeTest, AddsInOneOrderForAnyNumberOfRanks) {
  for (int replicas = 1; replicas <= 20; ++replicas)
    for (int ranks = 1; ranks <= 7; ++ranks) {
      std::vector<TreeNode> nodes;
      std::vector<float> sums;
      for (int rank = 0; rank < ranks; ++rank)
        for (const TreeNode& node : tree_nodes(deal_replicas(replicas, ranks, rank))) {
          nodes.push_back(node);
          sums.push_back(tree(node.first, node.size, 0));
        }
      for (const TreeAddition& a : tree_additions(nodes))
        sums[static_cast<std::size_t>(a.to)] += sums[static_cast<std::size_t>(a.from)];
      EXPECT_EQ(sums[0], tree(0, replicas, 0)) << replicas << " replicas on " << ranks << " ranks";
    }
}

using Case = std::tuple<int, bool, Index>;  // replicas, far device, chunk limit
class TreeSumTest : public testing::TestWithParam<Case> {};

TEST_P(TreeSumTest, GivesTheBitsOfTheTree) {
  const auto [replicas, far, chunk] = GetParam();
  static Communicator comm{test_session(), {.warn_seconds = 5, .abort_seconds = 8}};  // one for all cases
  HostDevice device{{.far = far, .polls = comm.rank()}};
  const auto sums = make_mpi_collectives(
      comm, device, {.replicas = replicas, .reproducible = true, .chunk_floats = chunk, .max_count = 250});
  const auto nodes = tree_nodes(deal_replicas(replicas, comm.size(), comm.rank()));
  Index different_order = 0;
  std::vector<Ticket> tickets;
  std::vector<std::pair<float*, Index>> results;
  for (const bool in_place : {false, true})
    for (const Index count : {0, 1, 3, 7, 250}) {
      std::vector<Part> parts;
      for (const TreeNode& node : nodes) {
        parts.push_back({node.first, node.size, device.allocate(count)});
        for (Index i = 0; i < count; ++i) parts.back().data[i] = tree(node.first, node.size, i);
      }
      float* out = in_place && !parts.empty() ? parts.back().data : device.allocate(count);
      tickets.push_back(sums->submit({out, parts, count, device.record(), "reproducible sum"}));
      results.emplace_back(out, count);
      if (comm.rank() == 1) sums->finish(tickets.back());
    }
  for (const Ticket ticket : tickets) sums->finish(ticket);
  for (const auto& [out, count] : results)
    for (Index i = 0; i < count; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(tree(0, replicas, i))) << i;
      float from_left = 0;
      for (int r = 0; r < replicas; ++r) from_left += leaf(r, i);
      different_order += from_left != tree(0, replicas, i);
    }
  if (replicas >= 4) {
    EXPECT_GT(different_order, 0) << "these values can't tell orders apart";
  }
}

/// As above, added by the device: its memory is given to MPI.
TEST(TreeSumOnDeviceTest, GivesTheBitsOfTheTree) {
  Communicator comm{test_session(), {.warn_seconds = 5, .abort_seconds = 8}};
  for (const int replicas : {1, 2, 5, 7})
    for (const Progress progress : {Progress::lazy, Progress::ahead}) {
      QueueDevice device(progress);
      constexpr Index count = 250;
      const auto sums = make_mpi_collectives(comm, device,
                                             {.replicas = replicas,
                                              .reproducible = true,
                                              .chunk_floats = 100,
                                              .max_count = count,
                                              .memory = MpiMemory::device});
      std::vector<Part> parts;
      for (const TreeNode& node : tree_nodes(deal_replicas(replicas, comm.size(), comm.rank()))) {
        parts.push_back({node.first, node.size, device.allocate(count)});
        for (Index i = 0; i < count; ++i) parts.back().data[i] = tree(node.first, node.size, i);
      }
      float* const out = parts.empty() ? device.allocate(count) : parts.back().data;
      sums->finish(sums->submit({out, parts, count, device.record(), "reproducible sum"}));
      sums->await(device.record(), "reproducible sum");
      for (Index i = 0; i < count; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(tree(0, replicas, i))) << i;
    }
}

TEST(DeviceMemoryTest, DebiansMpiSaysThatItTakesNone) {
  std::string library = mpi_version();
  if (library.find("Open MPI v4.1.4") == std::string::npos) GTEST_SKIP() << library;
  EXPECT_FALSE(mpi_takes_device_memory());
}

INSTANTIATE_TEST_SUITE_P(Replicas, TreeSumTest,
                         testing::Combine(testing::Values(1, 2, 4, 5, 6, 7), testing::Bool(),
                                          testing::Values(Index{3}, Index{1} << 20)),
                         [](const auto& one) {
                           return "W" + std::to_string(std::get<0>(one.param)) +
                                  (std::get<1>(one.param) ? "_far" : "_near") + "_chunk_" +
                                  std::to_string(std::get<2>(one.param));
                         });

TEST(TreeSumErrorTest, RefusesPartsThatAreNotTheNodesOfTheRun) {
  Communicator comm{test_session(), {}};
  HostDevice device;
  const auto sums = make_mpi_collectives(comm, device, {.replicas = 2 * comm.size(), .reproducible = true});
  float* data = device.allocate(1);
  const Part wrong{2 * comm.rank(), 1, data};  // half of the run
  EXPECT_THROW(sums->submit({data, std::span(&wrong, 1), 1, {}, "half"}), Error);
}

}  // namespace
}  // namespace convoy
