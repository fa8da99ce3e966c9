// SPDX-License-Identifier: Apache-2.0
// Steps over two ranks, captured and replayed: sums by NCCL become part of the graph, those that are staged through MPI
// stay between graphs.
#include <gtest/gtest.h>

#include <thread>

#include "comm/nccl/module.hpp"
#include "cuda/step/ranks_job.hpp"
#include "support/host_cuda/streams.hpp"
#include "support/host_nccl/host_nccl.hpp"

namespace convoy::cuda {
namespace {

/// Collective.
std::unique_ptr<Collectives> nccl_sums(Backend& backend, const CollectivesSpec& spec) {
  static const StallPolicy policy{
      .limits = {.warn_seconds = 0, .abort_seconds = 60}, .rank = ranks().rank(), .explain = {}};
  host_nccl::settings() = {.enqueue =
                               [](cudaStream_t stream, std::function<bool()> work) {
                                 host_cuda::enqueue(stream, [work = std::move(work)] {
                                   while (!work()) std::this_thread::yield();
                                 });
                               },
                           .keep_with_graph = host_cuda::keep_with_graph};
  NcclJob named{.rank = ranks().rank(), .ranks = ranks().size(), .id = {}};
  if (named.rank == 0) named.id = convoy_nccl_entry()->make_id();
  ranks().broadcast(named.id, "broadcast of NCCL's id");
  return convoy_nccl_entry()->make(named, policy, backend, spec);
}

JobSpec captured(JobSpec job) {
  job.launching = Launching::replayed;
  return job;
}

class Captured : public testing::TestWithParam<JobSpec> {};
INSTANTIATE_TEST_SUITE_P(All, Captured,
                         testing::Values(captured({.sums = nccl_sums}), captured({.sums = nccl_sums, .turns = 3}),
                                         captured({.sums = nccl_sums, .turns = 2, .reproducible = true}),
                                         captured({.sums = nccl_sums, .sync_bn = true}),
                                         captured({.sums = nccl_sums, .mode = SyncMode::weights, .turns = 2}),
                                         captured({}), captured({.turns = 3}), captured({.sync_bn = true})));

TEST_P(Captured, JobIsTheCpusInEveryOrder) {
  expect_the_cpus(GetParam());
  EXPECT_EQ(host_nccl::captured_operations(), 0) << "graphs outlive the communicator";
}

/// Of a step that runs, one that is captured, and one that is replayed; with synchronised norms, whose waits are many,
/// of the first two.
class CapturedWaits : public testing::TestWithParam<JobSpec> {};
INSTANTIATE_TEST_SUITE_P(All, CapturedWaits,
                         testing::Values(captured({.sums = nccl_sums}),
                                         captured({.sums = nccl_sums, .reproducible = true}),
                                         captured({.sums = nccl_sums, .sync_bn = true})));

TEST_P(CapturedWaits, EachForgottenWaitShows) {
  JobSpec job = GetParam();
  job.image = 4;
  job.steps = job.sync_bn ? 2 : 3;
  expect_each_wait_is_needed(job);
}

}  // namespace
}  // namespace convoy::cuda
