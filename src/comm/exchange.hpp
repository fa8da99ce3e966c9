// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mpi.h>

#include <memory>
#include <span>

#include "comm/communicator.hpp"

namespace convoy {

/// Moves pieces of reductions between ranks: memory the host can read, no queue, no deadline. A few pieces are under
/// way at once, each in its lane; they start in the same order on all ranks.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective. out[0..count) will be the sum over ranks of parts[...][0..count). `out` may be one of them; all stay
  /// until the lane is done.
  virtual void start(std::size_t lane, float* out, std::span<const float* const> parts, Index count,
                     const char* what) = 0;
  /// Moves what can move, never waits. True once the piece is done.
  virtual bool advance(std::size_t lane, const char* what) = 0;
};

/// Collective. By MPI_Iallreduce, in place: exactly one part, which is `out`.
std::unique_ptr<Exchange> make_all_reduce(MPI_Comm parent, std::size_t lanes);

/// Collective. By the fixed tree over `replicas` replicas: the parts are the nodes of this rank's run. Pieces have at
/// most `piece` elements.
std::unique_ptr<Exchange> make_tree_sum(MPI_Comm parent, std::size_t lanes, int replicas, Index piece);

}  // namespace convoy
