// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/errors.hpp"

namespace convoy {

/// MPI_Init and MPI_Finalize. Lives outside every try in main: while an exception unwinds, MPI_Finalize on one rank
/// would leave the others in their collective for ever (docs/adr).
class Session {
 public:
  /// Chooses ob1 over shared memory, which starts 0.2 s faster, on one host and if the user set nothing. Also
  /// chooses the algorithm of MPI_Iallreduce unless the user did.
  Session(int& argc, char**& argv);
  /// Collective. Waits for all ranks, unless an exception is in flight. If MPI_Finalize takes 2 s or more under mpirun,
  /// the rank stays another 5 to 30 s.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

/// Ranks of this job, as MPI sees it.
int world_size();

/// Ends the whole job with this code: MPI_Abort. Flush messages first.
[[noreturn]] void abort_job(Exit code);

}  // namespace convoy
