// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mpi.h>

#include <memory>
#include <span>

#include "comm/communicator.hpp"
#include "comm/shared_memory.hpp"

namespace convoy {

/// out[0..count) becomes the sum of parts[...][0..count) over the ranks. `out` may be one of the parts. The caller
/// keeps this memory until the lane is done.
struct Piece {
  float* out = nullptr;
  std::span<const float* const> parts;
  Index count = 0;
  Wire wire = Wire::fp32;
  const char* what = "";
};

/// Moves pieces of reductions between ranks, without a queue and without deadlines. MPI must be able to read the memory
/// of a piece; if ranks share memory, the host must. A few pieces are under way at once, each in its lane. All ranks
/// start them in the same order.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective.
  virtual void start(std::size_t lane, const Piece& piece) = 0;
  /// Moves what can move, never waits. True once the piece is done.
  virtual bool advance(std::size_t lane, const char* what) = 0;
  /// As Collectives::sent_bytes.
  virtual Index sent_bytes() const = 0;
};

/// Floats that a rank sends if a ring of ranks sums `count`: every slice but one, twice. What can't be divided evenly
/// is dealt to the ranks so that the sum over them is exact.
constexpr Index ring_floats(int rank, int ranks, Index count) {
  const Index all = 2 * (ranks - 1) * count;
  return all * (rank + 1) / ranks - all * rank / ranks;
}

/// Collective. By MPI_Iallreduce, in place and in fp32: exactly one part, which is `out`.
std::unique_ptr<Exchange> make_all_reduce(MPI_Comm parent, std::size_t lanes);

/// 4 MB: MPI's and the tree's working memory stays in cache. A reduction of 102 MB in one call took 320 ms between two
/// ranks where pieces of this size took 120 ms (Open MPI 4.1.4, two busy cores).
constexpr Index piece_floats = 1 << 20;
/// While one piece travels the next is downloaded or begun.
constexpr std::size_t lane_count = 4;

struct TreeSumSpec {
  std::size_t lanes = 1;
  int replicas = 1;
  Index piece = 0;            ///< most elements of one
  Device* device = nullptr;   ///< parts and sums are its memory, and its communication queue adds; null: host memory
  Wire wire = Wire::fp32;     ///< the other format of pieces; host memory only
  bool rounds_nodes = false;  ///< pieces of 16 bits: every sum of two nodes is rounded to them, not the last alone
};

/// Collective. By the fixed tree over the replicas: the parts are the nodes of this rank's run. Only point-to-point
/// messages: those are what every CUDA-aware MPI does with device memory.
std::unique_ptr<Exchange> make_tree_sum(MPI_Comm parent, const TreeSumSpec& spec);

/// Floats of one piece through memory that `ranks` ranks share: at most `limit`, fewer for many ranks.
Index shared_piece(int ranks, std::size_t lanes, Index limit);
/// Bytes of that memory.
std::size_t shared_sum_bytes(int ranks, std::size_t lanes, Index piece);

/// Through memory that all ranks share, of shared_sum_bytes, zeroed. In fp32 and in the order of ranks: exactly one
/// part, which is `out`.
std::unique_ptr<Exchange> make_shared_sum(std::unique_ptr<SharedMemory> memory, const Communicator& communicator,
                                          std::size_t lanes, Index piece);

}  // namespace convoy
