// SPDX-License-Identifier: Apache-2.0
// Sums that travel in 16 bits: their bits against the definition, and what the transport counts against the formula.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <tuple>

#include "comm/communicator.hpp"
#include "core/random.hpp"
#include "core/replicas.hpp"
#include "support/host_device.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

Communicator& ranks() {
  static Communicator instance{test_session(), {.warn_seconds = 5, .abort_seconds = 8}};
  return instance;
}

float leaf(int replica, Index i) {
  Random random(9, Stream::synthetic, static_cast<std::uint64_t>(replica), static_cast<std::uint64_t>(i));
  return static_cast<float>(random.normal() * std::pow(10.0, 6 * static_cast<double>(random.uniform()) - 3));
}
float rounded(float value, Wire wire) { return wire == Wire::fp32 ? value : widened(narrowed(value, wire), wire); }

/// Leaves and every sum of two are rounded.
float tree(int first, int count, Index i, Wire wire) {
  if (count == 1) return rounded(leaf(first, i), wire);
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return rounded(tree(first, lower, i, wire) + tree(first + lower, count - lower, i, wire), wire);
}

/// The sums of the ranks are rounded, added in fp32 along the tree over the ranks, and the result is rounded.
float sum_of_ranks(int first, int count, int replicas, Index i, Wire wire) {
  if (count == 1) {
    const ReplicaRun run = deal_replicas(replicas, ranks().size(), first);
    float sum = 0;
    for (int r = run.first; r < run.first + run.count; ++r) sum += leaf(r, i);
    return rounded(sum, wire);
  }
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
  return sum_of_ranks(first, lower, replicas, i, wire) + sum_of_ranks(first + lower, count - lower, replicas, i, wire);
}

float expected(bool reproducible, int replicas, Index i, Wire wire) {
  if (reproducible) return tree(0, replicas, i, wire);
  const int size = ranks().size();
  const Wire used = size == 1 ? Wire::fp32 : wire;  // nothing travels
  return rounded(sum_of_ranks(0, size, replicas, i, used), used);
}

using Case = std::tuple<Wire, bool, bool, Index>;  // wire, reproducible, far device, chunk limit
class WireSumTest : public testing::TestWithParam<Case> {
 protected:
  const Wire wire = std::get<0>(GetParam());
  const bool reproducible = std::get<1>(GetParam());
  HostDevice device{{.far = std::get<2>(GetParam()), .polls = ranks().rank()}};

  std::unique_ptr<Collectives> make(int replicas) {
    return make_mpi_collectives(ranks(), device,
                                {.replicas = replicas,
                                 .reproducible = reproducible,
                                 .chunk_floats = std::get<3>(GetParam()),
                                 .max_count = 250,
                                 .wire = wire});
  }
  /// As ReplicaSum gives them: nodes of the tree, or the rank's sum.
  std::vector<Part> parts_of(int replicas, Index count, Wire in) {
    const ReplicaRun run = deal_replicas(replicas, ranks().size(), ranks().rank());
    std::vector<Part> parts;
    if (reproducible) {
      for (const TreeNode& node : tree_nodes(run)) {
        parts.push_back({node.first, node.size, device.allocate(count)});
        for (Index i = 0; i < count; ++i) parts.back().data[i] = tree(node.first, node.size, i, in);
      }
    } else if (run.count > 0) {
      parts.push_back({run.first, run.count, device.allocate(count)});
      for (int r = run.first; r < run.first + run.count; ++r)
        for (Index i = 0; i < count; ++i) parts.back().data[i] += leaf(r, i);
    }
    return parts;
  }
};

TEST_P(WireSumTest, HasTheBitsOfItsDefinitionBesideSumsInFp32) {
  if (wire == Wire::fp32 && !reproducible) GTEST_SKIP() << "the MPI library's own order";
  for (const int replicas : {1, 2, 5, 7}) {
    const auto sums = make(replicas);
    struct Sum {
      float* out;
      Index count;
      Wire in;
    };
    std::vector<Sum> results;
    Ticket last = 0;
    for (const Index count : {1, 7, 0, 250})
      for (const Wire in : {wire, Wire::fp32}) {
        const auto parts = parts_of(replicas, count, in);
        float* const out = parts.empty() ? device.allocate(count) : parts.back().data;
        last = sums->submit({out, parts, count, device.record(), "sum in 16 bits", in});
        results.push_back({out, count, in});
      }
    sums->finish(last);
    sums->await(device.record(), "sums");
    for (const Sum& sum : results)
      for (Index i = 0; i < sum.count; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(sum.out[i]),
                  std::bit_cast<std::uint32_t>(expected(reproducible, replicas, i, sum.in)))
            << i << " of " << sum.count << " in " << name_of(sum.in) << ", " << replicas << " replicas";
  }
}

/// Each rank sends its slices of the parts to their owners, and its slice of the sum to all: 2 (R - 1) times the array.
TEST_P(WireSumTest, SendsAsManyBytesAsTheFormulaSays) {
  const int size = ranks().size();
  for (const int per_rank : {1, 2}) {  // each rank's run is one node
    const auto sums = make(per_rank * size);
    Index sent_before = 0;
    for (const Index count : {1, 7, 250})
      for (const Wire in : {wire, Wire::fp32}) {
        const auto parts = parts_of(per_rank * size, count, in);
        sums->finish(sums->submit({parts.back().data, parts, count, device.record(), "sum", in}));
        std::int64_t sent = *sums->sent_bytes();
        ranks().sum(std::span<std::int64_t>(&sent, 1), "bytes");
        EXPECT_EQ(sent - sent_before, 2 * (size - 1) * count * bytes_of(in)) << count << ' ' << name_of(in);
        sent_before = sent;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WireSumTest,
                         testing::Combine(testing::Values(Wire::fp32, Wire::bf16, Wire::fp16), testing::Bool(),
                                          testing::Bool(), testing::Values(Index{3}, Index{1} << 20)),
                         [](const auto& one) {
                           return std::string(name_of(std::get<0>(one.param))) +
                                  (std::get<1>(one.param) ? "_tree" : "_free") +
                                  (std::get<2>(one.param) ? "_far" : "_near") + "_chunk_" +
                                  std::to_string(std::get<3>(one.param));
                         });

TEST(WireErrorTest, RefusesAFormatThatTheSumsWereNotMadeFor) {
  if (ranks().size() == 1) GTEST_SKIP() << "nothing travels";
  HostDevice device;
  for (const bool reproducible : {false, true}) {
    const auto sums = make_mpi_collectives(ranks(), device, {.replicas = ranks().size(), .reproducible = reproducible});
    float* data = device.allocate(1);
    const Part part{ranks().rank(), 1, data};
    EXPECT_THROW(sums->submit({data, std::span(&part, 1), 1, {}, "sum", Wire::bf16}), Error);
  }
}

}  // namespace
}  // namespace convoy
