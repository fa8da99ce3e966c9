// SPDX-License-Identifier: Apache-2.0
// Every rank puts the slices of the others where all can read them, adds its own slice of all ranks, and copies the
// slices that the others have added. A rank's own slice is never copied, so each float goes through the shared memory
// once before and once after the addition.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/exchange.hpp"
#include "core/errors.hpp"

namespace convoy {
namespace {

constexpr std::size_t line = 64;

/// How far a rank is in a lane: numbers of pieces, so that nothing has to be set back.
struct alignas(line) Marks {
  std::atomic<std::uint64_t> arrived;  ///< its slices for the others can be read
  std::atomic<std::uint64_t> added;    ///< its slice of the sum can be read
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

/// What all ranks give in all lanes: 32 MiB, more than caches keep. A core reads what another one has just written
/// faster from memory than from that core's cache if they have no cache in common (docs/adr/0051).
constexpr Index shared_floats = 8 << 20;
/// A block of an addition stays in a core's first cache.
constexpr Index block_floats = 2048;

std::size_t of(int rank) { return static_cast<std::size_t>(rank); }

struct Lane {
  enum class Phase { idle, arrives, spreads } phase = Phase::idle;
  float* out = nullptr;
  Index count = 0;
  std::uint64_t number = 0;  ///< of this lane's pieces
  int seen = 0;              ///< ranks [0, seen) have reached this phase
};

class SharedSum final : public Exchange {
 public:
  SharedSum(std::unique_ptr<SharedMemory> memory, const Communicator& communicator, std::size_t lanes, Index piece)
      : memory_(std::move(memory)),
        rank_(communicator.rank()),
        ranks_(communicator.size()),
        piece_(piece),
        slice_(slice_of_rank(0, ranks_, piece).count),
        lanes_(lanes) {
    require(memory_->bytes() >= shared_sum_bytes(ranks_, lanes, piece), "memory of a sum");
    marks_ = reinterpret_cast<Marks*>(memory_->data());
    floats_ = reinterpret_cast<float*>(memory_->data() + lanes * of(ranks_) * sizeof(Marks));
    // Who touches a page first gets it on its own memory controller.
    for (std::size_t i = 0; i < lanes; ++i) {
      std::memset(given(i, rank_), 0, static_cast<std::size_t>(piece_) * sizeof(float));
      std::memset(sum(i, rank_), 0, static_cast<std::size_t>(slice_) * sizeof(float));
    }
  }

  void start(std::size_t index, const Piece& piece) override {
    require(piece.wire == Wire::fp32 && piece.count <= piece_, "a piece of a sum in shared memory");
    Lane& lane = lanes_[index];
    lane = {.phase = Lane::Phase::arrives, .out = piece.out, .count = piece.count, .number = lane.number + 1};
    // The others have read what stood here: they had added it before this rank's last piece was done.
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_) std::copy_n(piece.out + begin(lane, r), size(lane, r), given(index, rank_) + begin(lane, r));
    at(index, rank_).arrived.store(lane.number, std::memory_order_release);
    sent_bytes_ += ring_floats(rank_, ranks_, piece.count) * bytes_of(piece.wire);
  }

  bool advance(std::size_t index, const char* /*what*/) override {
    Lane& lane = lanes_[index];
    if (lane.phase == Lane::Phase::arrives) {
      for (; lane.seen < ranks_; ++lane.seen)
        if (at(index, lane.seen).arrived.load(std::memory_order_acquire) < lane.number) return false;
      add(index);
      at(index, rank_).added.store(lane.number, std::memory_order_release);
      lane.phase = Lane::Phase::spreads;
      lane.seen = 0;
    }
    if (lane.phase == Lane::Phase::spreads) {
      for (; lane.seen < ranks_; ++lane.seen) {
        if (at(index, lane.seen).added.load(std::memory_order_acquire) < lane.number) return false;
        if (lane.seen != rank_)
          std::copy_n(sum(index, lane.seen), size(lane, lane.seen), lane.out + begin(lane, lane.seen));
      }
      lane.phase = Lane::Phase::idle;
    }
    return true;
  }

  Index sent_bytes() const override { return sent_bytes_; }

 private:
  Marks& at(std::size_t lane, int rank) const { return marks_[lane * of(ranks_) + of(rank)]; }
  /// What a rank gives to the others: [lane][rank][piece].
  float* given(std::size_t lane, int rank) const {
    return floats_ + static_cast<Index>(lane * of(ranks_) + of(rank)) * piece_;
  }
  /// A rank's slice of the sum: [lane][rank][slice], behind all that is given. It is free when all have arrived with
  /// the next piece of the lane, since each copies a sum before it gives again.
  float* sum(std::size_t lane, int rank) const {
    return given(lanes_.size(), 0) + static_cast<Index>(lane * of(ranks_) + of(rank)) * slice_;
  }
  Index begin(const Lane& lane, int rank) const { return slice_of_rank(rank, ranks_, lane.count).begin; }
  Index size(const Lane& lane, int rank) const { return begin(lane, rank + 1) - begin(lane, rank); }

  /// This rank's slice, in the order of ranks on every rank.
  void add(std::size_t index) const {
    const Lane& lane = lanes_[index];
    const Index from = begin(lane, rank_), all = size(lane, rank_);
    const auto slice = [&](int r) { return (r == rank_ ? lane.out : given(index, r)) + from; };
    for (Index first = 0; first < all; first += block_floats) {
      const Index n = std::min(block_floats, all - first);
      float* const to = sum(index, rank_) + first;
      const float *a = slice(0) + first, *b = slice(1) + first;
      for (Index i = 0; i < n; ++i) to[i] = a[i] + b[i];
      for (int r = 2; r < ranks_; ++r) {
        b = slice(r) + first;
        for (Index i = 0; i < n; ++i) to[i] += b[i];
      }
      std::copy_n(to, n, lane.out + from + first);
    }
  }

  std::unique_ptr<SharedMemory> memory_;
  int rank_, ranks_;
  Index piece_, slice_;
  Marks* marks_ = nullptr;
  float* floats_ = nullptr;
  std::vector<Lane> lanes_;
  Index sent_bytes_ = 0;
};

}  // namespace

Index shared_piece(int ranks, std::size_t lanes, Index limit) {
  const Index each = shared_floats / (static_cast<Index>(lanes) * ranks);
  return std::min(limit, std::max<Index>(each / 16 * 16, 16 * ranks));
}

std::size_t shared_sum_bytes(int ranks, std::size_t lanes, Index piece) {
  return lanes * of(ranks) *
         (sizeof(Marks) + static_cast<std::size_t>(piece + slice_of_rank(0, ranks, piece).count) * sizeof(float));
}

std::unique_ptr<Exchange> make_shared_sum(std::unique_ptr<SharedMemory> memory, const Communicator& communicator,
                                          std::size_t lanes, Index piece) {
  return std::make_unique<SharedSum>(std::move(memory), communicator, lanes, piece);
}

}  // namespace convoy
