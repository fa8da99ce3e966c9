// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/nccl/module.hpp"

namespace convoy {

/// Collective. Sums by NCCL on the device's communication queue: nothing between submit and finish waits for the host,
/// so they may be captured. One rank makes a communicator, which shows that NCCL works, and no traffic.
std::unique_ptr<Collectives> make_nccl_collectives_here(const NcclJob& job, const StallPolicy& policy, Device& device,
                                                        const CollectivesSpec& spec);

}  // namespace convoy
