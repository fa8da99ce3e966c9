// SPDX-License-Identifier: Apache-2.0
// Counts operator new: what MPI allocates inside by malloc is not ours.
#include <gtest/gtest.h>

#include <tuple>

#include "comm/communicator.hpp"
#include "core/replicas.hpp"
#include "support/allocations.hpp"
#include "support/host_device.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

class SteadyStateTest : public testing::TestWithParam<std::tuple<bool, bool, HostSums>> {};

TEST_P(SteadyStateTest, AllocatesNothing) {
  const auto [reproducible, far, host_sums] = GetParam();
  constexpr int replicas = 7;
  Communicator comm{test_session(), {.warn_seconds = 5, .abort_seconds = 8}};
  HostDevice device{{.far = far, .polls = 1}};
  const auto sums = make_mpi_collectives(comm, device,
                                         {.replicas = replicas,
                                          .reproducible = reproducible,
                                          .chunk_floats = 300,
                                          .max_count = 1000,
                                          .host_sums = host_sums});
  std::vector<Part> parts;
  for (const TreeNode& node : tree_nodes(deal_replicas(replicas, comm.size(), comm.rank())))
    parts.push_back({node.first, node.size, device.allocate(1000)});
  float* out = device.allocate(1000);
  const auto step = [&] {
    Ticket last = 0;
    for (int bucket = 0; bucket < 5; ++bucket) {
      last = sums->submit({out, parts, 1000 - bucket, device.record(), "bucket"});
      sums->poll();
    }
    sums->finish(last);
    static_cast<void>(comm.agree_later({}));
  };
  step();
  const long before = count_allocations();
  for (int i = 0; i < 30; ++i) step();
  EXPECT_EQ(count_allocations() - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, SteadyStateTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(HostSums::library, HostSums::shared_memory)));

}  // namespace
}  // namespace convoy
