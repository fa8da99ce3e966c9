// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/deadline.hpp"

namespace convoy {

/// What agree_later has under way; it outlives the communicator where MPI may still write to it.
struct PendingVote {
  Votes sent{}, agreed{};
  MPI_Request request = MPI_REQUEST_NULL;
  bool started = false;
};

struct Communicator::State {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1, node_rank = 0, node_size = 1, node_first = 0;
  std::vector<std::string> hosts;
  StallPolicy policy;
  Index chunk = 0;
  std::unique_ptr<PendingVote> vote;

  void wait(MPI_Request& request, const char* what);
  void all_reduce(void* values, std::size_t count, std::size_t bytes_each, MPI_Datatype type, MPI_Op op,
                  const char* what);
  void broadcast(std::byte* bytes, std::size_t count, int root, const char* what);
  void broadcast_text(std::string& text, int root, const char* what);
};

}  // namespace convoy
