// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/communicator.hpp"

namespace convoy {

/// Collective. Compute threads a rank: OMP_NUM_THREADS where it is set, else the cores it may use, divided by the ranks
/// of its host that may use just the same ones (mpirun --bind-to none). The lowest number of all ranks, since threads
/// decide bits and replicas must not depend on ranks.
int threads_per_rank(Communicator& communicator);

}  // namespace convoy
