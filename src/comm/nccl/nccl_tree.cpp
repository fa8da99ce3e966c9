// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_tree.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// 16 MB: enough for full speed between GPUs, and bounds the memory of the slices.
constexpr Index largest_piece = 1 << 22;

std::size_t floats(Index count) { return static_cast<std::size_t>(count); }

}  // namespace

NcclTree::NcclTree(NcclComm& comm, Device& device, const Spec& spec)
    : comm_(comm), queue_(*device.communication()), rank_(spec.rank), ranks_(spec.ranks) {
  std::vector<TreeNode> nodes;
  for (int r = 0; r < ranks_; ++r) {
    const auto own = tree_nodes(deal_replicas(spec.replicas, ranks_, r));
    for (int i = 0; i < static_cast<int>(own.size()); ++i) owners_.push_back({r, i});
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  additions_ = tree_additions(nodes);
  piece_ = std::min(largest_piece, align_floats(std::max<Index>(spec.max_count, 1)));
  slice_ = slice(0, piece_).count;
  slices_ = device.allocate(slice_ * static_cast<Index>(nodes.size()));
}

Range NcclTree::slice(int rank, Index count) const {
  const Index each = align_floats((count + ranks_ - 1) / ranks_), begin = std::min(rank * each, count);
  return {begin, std::min(each, count - begin)};
}

void NcclTree::sum(float* out, std::span<const Part> parts, Index count, const char* what) {
  for (Index begin = 0; begin < count; begin += piece_) {
    const Range piece{begin, std::min(piece_, count - begin)};
    gather(parts, piece, what);
    const Range own = slice(rank_, piece.count);
    if (own.count > 0) {
      for (const TreeAddition& a : additions_)
        queue_.add(node(static_cast<std::size_t>(a.to)), node(static_cast<std::size_t>(a.from)), own.count);
      queue_.copy(out + begin + own.begin, node(0), own.count);
    }
    spread(out + begin, piece.count, what);
  }
}

void NcclTree::gather(std::span<const Part> parts, const Range& piece, const char* what) {
  const Range own = slice(rank_, piece.count);
  const auto stream = static_cast<cudaStream_t>(queue_.stream());
  for (std::size_t position = 0; position < owners_.size() && own.count > 0; ++position)
    if (owners_[position].rank == rank_)
      queue_.copy(node(position),
                  parts[static_cast<std::size_t>(owners_[position].index)].data + piece.begin + own.begin, own.count);
  NcclGroup group(comm_, what);
  // Messages between two ranks match by their order, which is that of the sender's nodes on both sides.
  for (int r = 0; r < ranks_; ++r) {
    const Range theirs = slice(r, piece.count);
    if (r == rank_ || theirs.count == 0) continue;
    for (const Part& part : parts)
      group.add(
          ncclSend(part.data + piece.begin + theirs.begin, floats(theirs.count), ncclFloat, r, comm_.get(), stream),
          "ncclSend");
  }
  for (std::size_t position = 0; position < owners_.size() && own.count > 0; ++position)
    if (owners_[position].rank != rank_)
      group.add(ncclRecv(node(position), floats(own.count), ncclFloat, owners_[position].rank, comm_.get(), stream),
                "ncclRecv");
  group.end();
}

void NcclTree::spread(float* out, Index count, const char* what) {
  const auto stream = static_cast<cudaStream_t>(queue_.stream());
  NcclGroup group(comm_, what);
  for (int r = 0; r < ranks_; ++r) {
    const Range theirs = slice(r, count);
    if (theirs.count == 0) continue;
    float* const at = out + theirs.begin;
    group.add(ncclBroadcast(at, at, floats(theirs.count), ncclFloat, r, comm_.get(), stream), "ncclBroadcast");
  }
  group.end();
}

}  // namespace convoy
