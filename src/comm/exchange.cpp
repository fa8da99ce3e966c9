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
  std::uint64_t sequence = 0;
  float* slices = nullptr;  ///< [nodes][slice]: this rank's slice of every node
  Event summed;             ///< of a device: its slice of the sum is in `out`
  std::vector<MPI_Request> requests;
  int active = 0;
  std::vector<int> counts, offsets;  ///< of the slices of all ranks
};

class TreeSum final : public Exchange {
 public:
  TreeSum(MPI_Comm parent, const TreeSumSpec& spec)
      : device_(spec.device),
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
    slice_ = align_floats((spec.piece + ranks_ - 1) / ranks_);
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
    }
  }

  void start(std::size_t index, float* out, std::span<const float* const> parts, Index count,
             const char* what) override {
    Lane& lane = lanes_[index];
    require(parts.size() == own_, "a rank's parts of a reproducible sum are the nodes of its run");
    lane.phase = Lane::Phase::gather;
    lane.out = out;
    lane.count = count;
    lane.sequence = started_++;
    lane.active = 0;
    // Kernels like their operands aligned.
    const Index each = align_floats((count + ranks_ - 1) / ranks_);
    for (int r = 0; r < ranks_; ++r) {
      const Index begin = std::min(r * each, count);
      lane.offsets[slot(r)] = static_cast<int>(begin);
      lane.counts[slot(r)] = static_cast<int>(std::min(each, count - begin));
    }
    receive(lane, parts, what);
    send(lane, parts, what);
  }

  bool advance(std::size_t index, const char* what) override {
    Lane& lane = lanes_[index];
    if (lane.phase == Lane::Phase::gather && arrived(lane, what)) {
      for (const TreeAddition& a : additions_) add(node(lane, a.to), node(lane, a.from), own_count(lane));
      // Messages of the first phase have left `out`, which may be one of the parts.
      copy(lane.out + lane.offsets[slot(rank_)], node(lane, 0), own_count(lane));
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
    if (lane.phase == Lane::Phase::spread && arrived(lane, what)) lane.phase = Lane::Phase::idle;
    return lane.phase == Lane::Phase::idle;
  }

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

  MPI_Request* next_request(Lane& lane) { return &lane.requests[static_cast<std::size_t>(lane.active++)]; }

  void receive(Lane& lane, std::span<const float* const> parts, const char* what) {
    const int count = lane.counts[slot(rank_)];
    for (int position = 0; position < static_cast<int>(owners_.size()); ++position) {
      const Owner owner = owners_[static_cast<std::size_t>(position)];
      if (owner.rank == rank_)
        copy(node(lane, position), parts[static_cast<std::size_t>(owner.index)] + lane.offsets[slot(rank_)], count);
      else if (count > 0)
        check_mpi(
            MPI_Irecv(node(lane, position), count, MPI_FLOAT, owner.rank, owner.index, gather_, next_request(lane)),
            "MPI_Irecv", what);
    }
  }

  void send(Lane& lane, std::span<const float* const> parts, const char* what) {
    // Each rank begins behind itself, so that not all send to rank 0 first.
    for (int step = 1; step < ranks_; ++step) {
      const int to = (rank_ + step) % ranks_;
      if (lane.counts[slot(to)] == 0) continue;
      for (std::size_t i = 0; i < parts.size(); ++i)
        check_mpi(MPI_Isend(parts[i] + lane.offsets[slot(to)], lane.counts[slot(to)], MPI_FLOAT, to,
                            static_cast<int>(i), gather_, next_request(lane)),
                  "MPI_Isend", what);
    }
  }

  /// Host memory by one collective call; device memory by messages.
  void spread(Lane& lane, const char* what) {
    lane.active = 0;
    if (queue_ == nullptr) {
      check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, lane.out, lane.counts.data(), lane.offsets.data(),
                                MPI_FLOAT, spread_, next_request(lane)),
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

  static bool arrived(Lane& lane, const char* what) {
    int all = 0;
    check_mpi(MPI_Testall(lane.active, lane.requests.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall", what);
    return all != 0;
  }

  Device* device_;
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
};

}  // namespace

std::unique_ptr<Exchange> make_tree_sum(MPI_Comm parent, const TreeSumSpec& spec) {
  return std::make_unique<TreeSum>(parent, spec);
}

namespace {

class AllReduce final : public Exchange {
 public:
  AllReduce(MPI_Comm parent, std::size_t lanes)
      : comm_(duplicate(parent, "start-up")), requests_(lanes, MPI_REQUEST_NULL) {}

  void start(std::size_t lane, float* out, std::span<const float* const>, Index count, const char* what) override {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm_, &requests_[lane]),
              "MPI_Iallreduce", what);
  }
  bool advance(std::size_t lane, const char* what) override {
    int arrived = 0;
    check_mpi(MPI_Test(&requests_[lane], &arrived, MPI_STATUS_IGNORE), "MPI_Test", what);
    return arrived != 0;
  }

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_all_reduce(MPI_Comm parent, std::size_t lanes) {
  return std::make_unique<AllReduce>(parent, lanes);
}

}  // namespace convoy
