// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/nccl/module.hpp"
#include "support/host_nccl/host_nccl.hpp"
#include "support/mpi_main.hpp"
#include "support/queue_device.hpp"

namespace convoy {

/// One for all tests of the binary.
inline Communicator& ranks() {
  static Communicator instance(test_session(), {.warn_seconds = 10, .abort_seconds = 20});
  return instance;
}

/// Collectives of NCCL's stand-in over a device whose queues are lists of work.
struct NcclTestJob {
  StallPolicy policy{.limits = {.warn_seconds = 0, .abort_seconds = 20}, .rank = ranks().rank(), .explain = {}};
  QueueDevice device;
  std::unique_ptr<Collectives> sums;

  explicit NcclTestJob(Progress progress) : device(progress) {}

  /// Collective.
  static NcclJob job() {
    NcclJob job{.rank = ranks().rank(), .ranks = ranks().size(), .id = {}};
    if (job.rank == 0) job.id = convoy_nccl_entry()->make_id();
    ranks().broadcast(job.id, "broadcast of NCCL's id");
    return job;
  }
  /// Collective.
  void start(const CollectivesSpec& spec) {
    host_nccl::settings() = {.enqueue = QueueDevice::enqueue, .keep_with_graph = QueueDevice::keep_with_graph};
    sums = convoy_nccl_entry()->make(job(), policy, device, spec);
    host_nccl::calls().clear();
    device.follows = 0;
  }
};

}  // namespace convoy
