// SPDX-License-Identifier: Apache-2.0
// Our communicators return errors instead of aborting, so every call of MPI goes through check_mpi: an unchecked one
// goes on with data nobody sent.
#pragma once
#include <mpi.h>

#include <string>

#include "core/errors.hpp"

namespace convoy {

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
