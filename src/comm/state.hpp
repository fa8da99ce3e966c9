// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/deadline.hpp"
#include "core/errors.hpp"

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
  void send_text(const std::string& text, int to, const char* what);
  std::string receive_text(int from, const char* what);
  void broadcast_text(std::string& text, int root, const char* what);
};

// Our communicators return errors instead of aborting, so every call of MPI goes through check_mpi: an unchecked one
// goes on with data nobody sent.

/// Throws Error(communication) unless `result` is MPI_SUCCESS. `what` is what the program was doing.
inline void check_mpi(int result, const char* call, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(result, text, &length);
  fail(Exit::communication, "{} failed in {} ({}); see the messages of other ranks", call, what, text);
}

/// Collective. A communicator of its own, so that its messages never meet others; its errors are returned. It is left
/// to MPI_Finalize: freeing one is collective, and destructors never communicate.
inline MPI_Comm duplicate(MPI_Comm parent, const char* what) {
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &comm), "MPI_Comm_dup", what);
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", what);
  return comm;
}

}  // namespace convoy
