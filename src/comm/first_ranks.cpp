// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "comm/checked.hpp"
#include "comm/state.hpp"

namespace convoy {

std::unique_ptr<Communicator> Communicator::first_ranks(int count, const StallLimits& limits) {
  const State& whole = *state_;
  require(count >= 1 && count <= whole.size, "number of ranks of a part");
  const bool inside = whole.rank < count;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(whole.comm, inside ? 0 : MPI_UNDEFINED, whole.rank, &comm), "MPI_Comm_split",
            "a part of the ranks");
  if (!inside) return nullptr;
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "a part of the ranks");
  auto state = std::make_unique<State>();
  state->comm = comm;
  state->rank = whole.rank;
  state->size = count;
  state->chunk = whole.chunk;
  state->policy = whole.policy;
  state->policy.limits = limits;
  state->vote = std::make_unique<PendingVote>();
  state->hosts.assign(whole.hosts.begin(), whole.hosts.begin() + count);
  const std::string& host = whole.hosts[static_cast<std::size_t>(whole.rank)];
  const auto own = state->hosts.begin() + whole.rank;
  state->node_rank = static_cast<int>(std::count(state->hosts.begin(), own, host));
  state->node_size = static_cast<int>(std::count(state->hosts.begin(), state->hosts.end(), host));
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
}

}  // namespace convoy
