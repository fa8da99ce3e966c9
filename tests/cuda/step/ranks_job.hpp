// SPDX-License-Identifier: Apache-2.0
// A few steps of a small network over the ranks of the test, launched as train/loop.cpp does it, on any backend:
// what the CUDA backend is compared with the CPU's by, and what is run again with each wait forgotten in turn.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "cuda/step/training.hpp"
#include "sync/sync.hpp"

namespace convoy::cuda {

/// Collective.
using MakeSums = std::unique_ptr<Collectives> (*)(Backend&, const CollectivesSpec&);

/// Collective. By MPI, through pinned memory.
std::unique_ptr<Collectives> staged_sums(Backend& backend, const CollectivesSpec& spec);

/// Replayed: replicas that wait for the host between their stages are a graph a stage, others one graph.
struct JobSpec {
  const char* model = "resnet8";
  MakeSums sums = staged_sums;
  SyncMode mode = SyncMode::gradients;
  Launching launching = Launching::direct;
  int turns = 1;  ///< replicas a rank
  bool reproducible = false, sync_bn = false;
  Index image = 8, steps = 4;
  Pace pace = Pace::ahead;
  std::string kernels;  ///< options of the backend
};

struct JobResult {
  Plan plan;
  std::vector<float> set;          ///< the rank's first replica after the last step
  Index stages = 0, launches = 0;  ///< graphs launched in the last step
};

Communicator& ranks();

/// Collective.
JobResult run(Backend& backend, const JobSpec& job);

/// Collective. In every order of queued work the bits are the same, the parameters are those of the CPU backend, and as
/// many graphs are launched as there must be.
void expect_the_cpus(const JobSpec& job);

/// Collective. The rule for waits between streams: each one that is forgotten changes the result in some order of
/// queued work, or is refused. So none lacks a test, and none is there that another wait, the order of a stream or the
/// host's own waiting makes needless. The job is so small that it runs a few hundred times, and none in which the host
/// has waited for a step for another reason before rows are uploaded again (several replicas a rank with sums by MPI,
/// or averages over more than two steps): there the rows' wait for the step that read their buffer is spared by that.
void expect_each_wait_is_needed(JobSpec job);

}  // namespace convoy::cuda
