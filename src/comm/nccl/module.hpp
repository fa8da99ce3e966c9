// SPDX-License-Identifier: Apache-2.0
// What the module libconvoy_nccl.so shows.
#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "comm/deadline.hpp"

namespace convoy {

struct NcclJob {
  int rank = 0, ranks = 1;
  std::string id;  ///< of make_id on rank 0, the same on all ranks
};

struct NcclEntry {
  const char* build = nullptr;  ///< as CudaEntry's
  /// Throws Error(device) where the library that was found is too old or can't start.
  std::string (*make_id)() = nullptr;
  /// Collective. `policy` and `device`, which has a communication queue, must outlive the result.
  std::unique_ptr<Collectives> (*make)(const NcclJob& job, const StallPolicy& policy, Device& device,
                                       const CollectivesSpec& spec) = nullptr;
};

}  // namespace convoy

extern "C" const convoy::NcclEntry* convoy_nccl_entry();
