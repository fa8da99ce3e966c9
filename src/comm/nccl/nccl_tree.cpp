// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_tree.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// 16 MB: enough for full speed between GPUs, and bounds the memory of the slices.
constexpr Index largest_piece = 1 << 22;

/// Moved, never added: the numbers of a 16-bit format are only bits to NCCL.
ncclDataType_t type_of(Wire wire) {
  switch (wire) {
    case Wire::fp32:
      return ncclFloat;
    case Wire::bf16:
      return ncclBfloat16;
    case Wire::fp16:
      return ncclHalf;
  }
  fail(Exit::internal, "a format that NCCL does not know");
}

std::size_t slot(Index count) { return static_cast<std::size_t>(count); }

}  // namespace

NcclTree::NcclTree(NcclComm& comm, Device& device, const Spec& spec)
    : comm_(comm),
      queue_(*device.communication()),
      rank_(spec.rank),
      ranks_(spec.ranks),
      rounds_nodes_(spec.rounds_nodes) {
  std::vector<TreeNode> nodes;
  std::size_t own_nodes = 0;
  for (int r = 0; r < ranks_; ++r) {
    const auto own = tree_nodes(deal_replicas(spec.replicas, ranks_, r));
    for (int i = 0; i < static_cast<int>(own.size()); ++i) owners_.push_back({r, i});
    nodes.insert(nodes.end(), own.begin(), own.end());
    if (r == rank_) own_nodes = own.size();
  }
  additions_ = tree_additions(nodes);
  piece_ = std::min(largest_piece, align_floats(std::max<Index>(spec.max_count, 1)));
  slice_ = slice(0, piece_).count;
  slices_ = device.allocate(slice_ * static_cast<Index>(nodes.size()));
  if (spec.wire == Wire::fp32) return;
  sent_ = allocate_halves(device, own_nodes * slot(piece_));
  received_ = allocate_halves(device, nodes.size() * slot(slice_));
  spread_ = allocate_halves(device, slot(piece_));
}

std::uint16_t* NcclTree::allocate_halves(Device& device, std::size_t count) const {
  return reinterpret_cast<std::uint16_t*>(device.allocate(static_cast<Index>((count + 1) / 2)));
}

Range NcclTree::slice(int rank, Index count) const { return slice_of_rank(rank, ranks_, count); }

void NcclTree::sum(const Reduction& sum) {
  const bool rounds = rounds_nodes_ && sum.wire != Wire::fp32;
  require(sum.wire == Wire::fp32 || spread_ != nullptr, "a format that the sums were not made for");
  for (Index begin = 0; begin < sum.count; begin += piece_) {
    const Range piece{begin, std::min(piece_, sum.count - begin)};
    gather(sum, piece);
    const Range own = slice(rank_, piece.count);
    if (own.count > 0) {
      for (const TreeAddition& a : additions_) {
        queue_.add(node(slot(a.to)), node(slot(a.from)), own.count);
        if (rounds) queue_.round(node(slot(a.to)), own.count, sum.wire);
      }
      if (sum.wire == Wire::fp32)
        queue_.copy(sum.out + begin + own.begin, node(0), own.count);
      else
        queue_.narrow(spread_ + own.begin, node(0), own.count, sum.wire);
    }
    spread(sum, piece);
  }
}

void NcclTree::gather(const Reduction& sum, const Range& piece) {
  const Range own = slice(rank_, piece.count);
  const bool whole = sum.wire == Wire::fp32;
  const ncclDataType_t type = type_of(sum.wire);
  const auto stream = static_cast<cudaStream_t>(queue_.stream());
  const auto halves = [&](std::size_t index) { return sent_ + static_cast<Index>(index) * piece_; };
  for (std::size_t i = 0; i < sum.parts.size() && !whole; ++i)
    queue_.narrow(halves(i), sum.parts[i].data + piece.begin, piece.count, sum.wire);
  for (std::size_t position = 0; position < owners_.size() && own.count > 0; ++position) {
    if (owners_[position].rank != rank_) continue;
    const std::size_t index = slot(owners_[position].index);
    if (whole)
      queue_.copy(node(position), sum.parts[index].data + piece.begin + own.begin, own.count);
    else
      queue_.widen(node(position), halves(index) + own.begin, own.count, sum.wire);
  }
  NcclGroup group(comm_, sum.what);
  // Messages between two ranks match by their order, which is that of the sender's nodes on both sides.
  for (int r = 0; r < ranks_; ++r) {
    const Range theirs = slice(r, piece.count);
    if (r == rank_ || theirs.count == 0) continue;
    for (std::size_t i = 0; i < sum.parts.size(); ++i) {
      const void* from = sum.parts[i].data + piece.begin + theirs.begin;
      if (!whole) from = halves(i) + theirs.begin;
      group.add(ncclSend(from, slot(theirs.count), type, r, comm_.get(), stream), "ncclSend");
    }
  }
  const auto others = [&](const auto& visit) {
    for (std::size_t position = 0; position < owners_.size() && own.count > 0; ++position)
      if (owners_[position].rank != rank_) visit(position);
  };
  const auto arriving = [&](std::size_t position) { return received_ + static_cast<Index>(position) * slice_; };
  others([&](std::size_t position) {
    void* const to = whole ? static_cast<void*>(node(position)) : arriving(position);
    group.add(ncclRecv(to, slot(own.count), type, owners_[position].rank, comm_.get(), stream), "ncclRecv");
  });
  group.end();
  if (!whole)
    others([&](std::size_t position) { queue_.widen(node(position), arriving(position), own.count, sum.wire); });
}

void NcclTree::spread(const Reduction& sum, const Range& piece) {
  const auto stream = static_cast<cudaStream_t>(queue_.stream());
  float* const out = sum.out + piece.begin;
  NcclGroup group(comm_, sum.what);
  for (int r = 0; r < ranks_; ++r) {
    const Range theirs = slice(r, piece.count);
    if (theirs.count == 0) continue;
    void* at = out + theirs.begin;
    if (sum.wire != Wire::fp32) at = spread_ + theirs.begin;
    group.add(ncclBroadcast(at, at, slot(theirs.count), type_of(sum.wire), r, comm_.get(), stream), "ncclBroadcast");
  }
  group.end();
  // The own slice as well: every rank has what the others were sent.
  if (sum.wire != Wire::fp32) queue_.widen(out, spread_, piece.count, sum.wire);
}

}  // namespace convoy
