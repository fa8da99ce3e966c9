// SPDX-License-Identifier: Apache-2.0
// Every rank gathers its slice of all nodes, adds them in the order of the tree, and the slices are gathered back.
// Where each rank owns one node this is the traffic of a ring.
#include "comm/exchange.hpp"

#include <algorithm>

#include "comm/state.hpp"
#include "core/replicas.hpp"

namespace convoy {
namespace {

struct Lane {
  enum class Phase { idle, gather, added, spread } phase = Phase::idle;
  float* out = nullptr;
  Index count = 0;
  Wire wire = Wire::fp32;
  std::uint64_t sequence = 0;
  float* slices = nullptr;           ///< [nodes][slice]: this rank's slice of every node
  std::vector<std::uint16_t> parts;  ///< [own nodes][piece]: this rank's parts in 16 bits
  std::vector<std::uint16_t> nodes;  ///< [nodes][slice]: as they arrive
  std::vector<std::uint16_t> sum;    ///< [piece]
  Event summed;                      ///< of a device: its slice of the sum is in `out`
  std::vector<MPI_Request> requests;
  int active = 0;
  std::vector<int> counts, offsets;  ///< of the slices of all ranks
};

class TreeSum final : public Exchange {
 public:
  TreeSum(MPI_Comm parent, const TreeSumSpec& spec)
      : device_(spec.device),
        rounds_nodes_(spec.rounds_nodes),
        piece_(spec.piece),
        queue_(spec.device != nullptr ? spec.device->communication() : nullptr),
        gather_(duplicate(parent, "start-up")),
        spread_(duplicate(parent, "start-up")) {
    check_mpi(MPI_Comm_rank(parent, &rank_), "MPI_Comm_rank", "start-up");
    check_mpi(MPI_Comm_size(parent, &ranks_), "MPI_Comm_size", "start-up");
    std::vector<TreeNode> nodes;
    for (int r = 0; r < ranks_; ++r) {
      const auto own = tree_nodes(deal_replicas(spec.replicas, ranks_, r));
      for (int i = 0; i < static_cast<int>(own.size()); ++i) owners_.push_back({r, i});
      nodes.insert(nodes.end(), own.begin(), own.end());
      if (r == rank_) own_ = own.size();
    }
    additions_ = tree_additions(nodes);
    require(spec.wire == Wire::fp32 || device_ == nullptr, "16 bits go through host memory");
    slice_ = slice_of_rank(0, ranks_, spec.piece).count;
    const Index lane_floats = static_cast<Index>(nodes.size()) * slice_,
                all = static_cast<Index>(spec.lanes) * lane_floats;
    if (device_ == nullptr) memory_.resize(static_cast<std::size_t>(all));
    float* const slices = device_ == nullptr ? memory_.data() : device_->allocate(all);
    lanes_.resize(spec.lanes);
    for (std::size_t i = 0; i < spec.lanes; ++i) {
      lanes_[i].slices = slices + static_cast<Index>(i) * lane_floats;
      lanes_[i].requests.resize(nodes.size() + (own_ + 2) * slot(ranks_), MPI_REQUEST_NULL);
      lanes_[i].counts.resize(slot(ranks_));
      lanes_[i].offsets.resize(slot(ranks_));
      if (spec.wire == Wire::fp32) continue;
      lanes_[i].parts.resize(own_ * static_cast<std::size_t>(piece_));
      lanes_[i].nodes.resize(static_cast<std::size_t>(lane_floats));
      lanes_[i].sum.resize(static_cast<std::size_t>(piece_));
    }
  }

  void start(std::size_t index, const Piece& piece) override {
    Lane& lane = lanes_[index];
    const Index count = piece.count;
    require(piece.parts.size() == own_, "a rank's parts of a reproducible sum are the nodes of its run");
    require(piece.wire == Wire::fp32 || !lane.sum.empty(), "a format that the sums were not made for");
    lane.phase = Lane::Phase::gather;
    lane.out = piece.out;
    lane.count = count;
    lane.wire = piece.wire;
    lane.sequence = started_++;
    lane.active = 0;
    for (int r = 0; r < ranks_; ++r) {
      const Range slice = slice_of_rank(r, ranks_, count);
      lane.offsets[slot(r)] = static_cast<int>(slice.begin);
      lane.counts[slot(r)] = static_cast<int>(slice.count);
    }
    if (lane.wire != Wire::fp32)
      for (std::size_t i = 0; i < own_; ++i) narrow(part(lane, i), piece.parts[i], count, lane.wire);
    receive(lane, piece);
    send(lane, piece);
  }

  bool advance(std::size_t index, const char* what) override {
    Lane& lane = lanes_[index];
    if (lane.phase == Lane::Phase::gather && arrived(lane, what)) {
      widen_nodes(lane);
      for (const TreeAddition& a : additions_) {
        add(node(lane, a.to), node(lane, a.from), own_count(lane));
        if (rounds_nodes_ && lane.wire != Wire::fp32) round_to(node(lane, a.to), own_count(lane), lane.wire);
      }
      // Messages of the first phase have left `out`, which may be one of the parts.
      const int own = lane.offsets[slot(rank_)];
      if (lane.wire == Wire::fp32)
        copy(lane.out + own, node(lane, 0), own_count(lane));
      else
        narrow(lane.sum.data() + own, node(lane, 0), own_count(lane), lane.wire);
      if (queue_ != nullptr) lane.summed = queue_->record();
      lane.phase = Lane::Phase::added;
    }
    // The second phase starts in the order of the first, on every rank.
    if (lane.phase == Lane::Phase::added && lane.sequence == spread_started_ &&
        (lane.summed.id == 0 || device_->done(lane.summed))) {
      ++spread_started_;
      spread(lane, what);
      lane.phase = Lane::Phase::spread;
    }
    if (lane.phase == Lane::Phase::spread && arrived(lane, what)) {
      // Its own slice as well: every rank has what the others were sent.
      if (lane.wire != Wire::fp32) widen(lane.out, lane.sum.data(), lane.count, lane.wire);
      lane.phase = Lane::Phase::idle;
    }
    return lane.phase == Lane::Phase::idle;
  }

  Index sent_bytes() const override { return sent_bytes_; }

 private:
  struct Owner {
    int rank, index;  ///< its index-th node
  };

  static std::size_t slot(int rank) { return static_cast<std::size_t>(rank); }
  float* node(Lane& lane, int position) const { return lane.slices + position * slice_; }
  Index own_count(const Lane& lane) const { return lane.counts[slot(rank_)]; }

  /// One IEEE addition an element, as Device::add.
  void add(float* to, const float* from, Index n) {
    if (queue_ != nullptr) return queue_->add(to, from, n);
    for (Index i = 0; i < n; ++i) to[i] += from[i];
  }
  void copy(float* to, const float* from, Index n) {
    if (queue_ != nullptr) return queue_->copy(to, from, n);
    std::copy_n(from, n, to);
  }

  std::uint16_t* part(Lane& lane, std::size_t index) const {
    return lane.parts.data() + static_cast<Index>(index) * piece_;
  }
  std::uint16_t* arriving(Lane& lane, int position) const { return lane.nodes.data() + position * slice_; }

  /// Those of this rank are there already.
  void widen_nodes(Lane& lane) const {
    if (lane.wire == Wire::fp32) return;
    for (int position = 0; position < static_cast<int>(owners_.size()); ++position)
      if (owners_[static_cast<std::size_t>(position)].rank != rank_)
        widen(node(lane, position), arriving(lane, position), own_count(lane), lane.wire);
  }

  MPI_Request* next_request(Lane& lane) { return &lane.requests[static_cast<std::size_t>(lane.active++)]; }

  void receive(Lane& lane, const Piece& piece) {
    const int count = lane.counts[slot(rank_)], begin = lane.offsets[slot(rank_)];
    const bool whole = lane.wire == Wire::fp32;
    for (int position = 0; position < static_cast<int>(owners_.size()); ++position) {
      const Owner owner = owners_[static_cast<std::size_t>(position)];
      const auto index = static_cast<std::size_t>(owner.index);
      if (owner.rank == rank_ && whole) copy(node(lane, position), piece.parts[index] + begin, count);
      if (owner.rank == rank_ && !whole) widen(node(lane, position), part(lane, index) + begin, count, lane.wire);
      if (owner.rank == rank_ || count == 0) continue;
      void* const to = whole ? static_cast<void*>(node(lane, position)) : arriving(lane, position);
      check_mpi(MPI_Irecv(to, count, type_of(lane), owner.rank, owner.index, gather_, next_request(lane)), "MPI_Irecv",
                piece.what);
    }
  }

  void send(Lane& lane, const Piece& piece) {
    // Each rank begins behind itself, so that not all send to rank 0 first.
    for (int step = 1; step < ranks_; ++step) {
      const int to = (rank_ + step) % ranks_;
      if (lane.counts[slot(to)] == 0) continue;
      for (std::size_t i = 0; i < own_; ++i) {
        const void* from = piece.parts[i] + lane.offsets[slot(to)];
        if (lane.wire != Wire::fp32) from = part(lane, i) + lane.offsets[slot(to)];
        check_mpi(
            MPI_Isend(from, lane.counts[slot(to)], type_of(lane), to, static_cast<int>(i), gather_, next_request(lane)),
            "MPI_Isend", piece.what);
        sent_bytes_ += lane.counts[slot(to)] * bytes_of(lane.wire);
      }
    }
  }

  /// Host memory by one collective call; device memory by messages.
  void spread(Lane& lane, const char* what) {
    lane.active = 0;
    sent_bytes_ += (ranks_ - 1) * own_count(lane) * bytes_of(lane.wire);
    if (queue_ == nullptr) {
      void* const sum = lane.wire == Wire::fp32 ? static_cast<void*>(lane.out) : lane.sum.data();
      check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sum, lane.counts.data(), lane.offsets.data(),
                                type_of(lane), spread_, next_request(lane)),
                "MPI_Iallgatherv", what);
      return;
    }
    for (int step = 1; step < ranks_; ++step) {
      const int to = (rank_ + step) % ranks_, from = (rank_ - step + ranks_) % ranks_;
      if (lane.counts[slot(from)] > 0)
        check_mpi(MPI_Irecv(lane.out + lane.offsets[slot(from)], lane.counts[slot(from)], MPI_FLOAT, from, 0, spread_,
                            next_request(lane)),
                  "MPI_Irecv", what);
      if (own_count(lane) > 0)
        check_mpi(MPI_Isend(lane.out + lane.offsets[slot(rank_)], lane.counts[slot(rank_)], MPI_FLOAT, to, 0, spread_,
                            next_request(lane)),
                  "MPI_Isend", what);
    }
  }

  static MPI_Datatype type_of(const Lane& lane) { return lane.wire == Wire::fp32 ? MPI_FLOAT : MPI_UINT16_T; }

  static bool arrived(Lane& lane, const char* what) {
    int all = 0;
    check_mpi(MPI_Testall(lane.active, lane.requests.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall", what);
    return all != 0;
  }

  Device* device_;
  bool rounds_nodes_;
  Index piece_;
  CommunicationQueue* queue_;
  MPI_Comm gather_, spread_;  ///< one for each phase: ranks may be in different phases of different pieces
  int rank_ = 0, ranks_ = 1;
  std::size_t own_ = 0;
  std::vector<Owner> owners_;  ///< of all nodes in the order of replicas
  std::vector<TreeAddition> additions_;
  Index slice_ = 0;
  std::vector<float> memory_;
  std::vector<Lane> lanes_;
  std::uint64_t started_ = 0, spread_started_ = 0;
  Index sent_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_tree_sum(MPI_Comm parent, const TreeSumSpec& spec) {
  return std::make_unique<TreeSum>(parent, spec);
}

namespace {

class AllReduce final : public Exchange {
 public:
  AllReduce(MPI_Comm parent, std::size_t lanes)
      : comm_(duplicate(parent, "start-up")), requests_(lanes, MPI_REQUEST_NULL) {
    check_mpi(MPI_Comm_rank(parent, &rank_), "MPI_Comm_rank", "start-up");
    check_mpi(MPI_Comm_size(parent, &ranks_), "MPI_Comm_size", "start-up");
  }

  void start(std::size_t lane, const Piece& piece) override {
    require(piece.wire == Wire::fp32, "MPI's own sums are in fp32");
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, piece.out, static_cast<int>(piece.count), MPI_FLOAT, MPI_SUM, comm_,
                             &requests_[lane]),
              "MPI_Iallreduce", piece.what);
    sent_bytes_ += ring_floats(rank_, ranks_, piece.count) * bytes_of(piece.wire);
  }
  bool advance(std::size_t lane, const char* what) override {
    int arrived = 0;
    check_mpi(MPI_Test(&requests_[lane], &arrived, MPI_STATUS_IGNORE), "MPI_Test", what);
    return arrived != 0;
  }
  Index sent_bytes() const override { return sent_bytes_; }

 private:
  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
  std::vector<MPI_Request> requests_;
  Index sent_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_all_reduce(MPI_Comm parent, std::size_t lanes) {
  return std::make_unique<AllReduce>(parent, lanes);
}

}  // namespace convoy
