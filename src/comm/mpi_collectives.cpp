// SPDX-License-Identifier: Apache-2.0
// Reductions wait in a queue, are cut into pieces, and the pieces go through a few lanes: [download], exchange,
// [upload].
#include <algorithm>
#include <chrono>
#include <climits>

#include "comm/checked.hpp"
#include "comm/exchange.hpp"
#include "comm/state.hpp"
#include "core/replica_tree.hpp"

namespace convoy {
namespace {

/// 4 MB: MPI's and the tree's working memory stays in cache. A reduction of 102 MB in one call took 320 ms between two
/// ranks where pieces of this size took 120 ms (Open MPI 4.1.4, two busy cores).
constexpr Index piece_floats = 1 << 20;
/// While one piece travels the next is downloaded or begun.
constexpr std::size_t lane_count = 4;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Operation {
  float* out = nullptr;
  std::vector<const float*> parts;
  Index count = 0;
  Index begun = 0, moved = 0;  ///< elements given to lanes, and back from them
  Event ready;
  const char* what = "";
  Clock::time_point started;
};

/// A piece on its way: elements [begin, begin + count) of an operation.
struct Lane {
  Operation* operation = nullptr;
  Index begin = 0, count = 0;
  Event event;  ///< before the exchange: its parts are there; after it: the upload is done
  bool done = false;
  std::vector<float*> host;  ///< staging, one for each part and at least one; the first takes the sum
  std::vector<const float*> parts;
};

class MpiCollectives final : public Collectives {
 public:
  MpiCollectives(MPI_Comm comm, const StallPolicy& policy, Device& device, const CollectivesSpec& spec)
      : policy_(policy), device_(device), spec_(spec), pending_(policy) {
    int rank = 0;
    check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", "start-up");
    check_mpi(MPI_Comm_size(comm, &ranks_), "MPI_Comm_size", "start-up");
    require(spec.chunk_floats > 0 && spec.chunk_floats <= INT_MAX, "chunk limit of collectives");
    run_ = deal_replicas(spec.replicas, ranks_, rank);
    nodes_ = tree_nodes(run_);
    operations_.resize(64);
    for (Operation& operation : operations_) operation.parts.reserve(std::max<std::size_t>(nodes_.size(), 1));
    if (ranks_ == 1) return;
    piece_ = std::min(spec.chunk_floats, piece_floats);
    if (spec.max_count > 0) piece_ = std::min(piece_, align_floats(spec.max_count));
    exchange_ =
        spec.reproducible ? make_tree_sum(comm, lane_count, spec.replicas, piece_) : make_all_reduce(comm, lane_count);
    make_lanes();
  }

  Ticket submit(const Reduction& reduction) override {
    Operation& operation = enqueue();
    operation.out = reduction.out;
    operation.count = reduction.count;
    operation.begun = operation.moved = 0;
    operation.what = reduction.what;
    operation.ready = reduction.after;
    operation.parts.clear();
    if (spec_.reproducible) require_tree(reduction.parts);
    if (ranks_ == 1) {
      add_here(reduction);
      operation.moved = reduction.count;
    } else if (spec_.reproducible) {
      for (const Part& part : reduction.parts) operation.parts.push_back(part.data);
    } else {
      if (add_here(reduction)) operation.ready = device_.record();
      operation.parts.push_back(reduction.out);
    }
    const Ticket ticket = submitted_;
    advance();
    return ticket;
  }

  bool capturable() const override { return ranks_ == 1; }

  void poll() override {
    advance();
    if (completed_ < submitted_) pending_.spend(oldest().what);
  }

  void finish(Ticket ticket) override {
    require(ticket <= submitted_, "finish of a reduction that was submitted");
    if (completed_ >= ticket) return;
    const auto begin = Clock::now();
    Patience patience(policy_);
    for (Ticket seen = completed_;;) {
      advance();
      if (completed_ >= ticket) break;
      if (seen != completed_) patience.restart();
      seen = completed_;
      patience.pause(oldest().what);
    }
    waited_seconds_ += seconds_since(begin);
  }

  void await(Event event, const char* what) override {
    if (passed(event)) return;
    const auto begin = Clock::now();
    Patience patience(policy_);
    while (!passed(event)) {
      advance();
      patience.pause(what);
    }
    waited_seconds_ += seconds_since(begin);
  }

  double take_wait_seconds() override { return std::exchange(waited_seconds_, 0.0); }

 private:
  bool passed(Event event) { return event.id == 0 || device_.done(event); }
  Operation& at(Ticket ticket) { return operations_[ticket % operations_.size()]; }
  Operation& oldest() { return at(completed_ + 1); }

  void make_lanes() {
    lanes_.resize(lane_count);
    const std::size_t parts = spec_.reproducible ? std::max<std::size_t>(nodes_.size(), 1) : 1;
    for (Lane& lane : lanes_) lane.parts.reserve(parts);
    if (device_.host_reads()) return;
    staging_.resize(lane_count * parts * static_cast<std::size_t>(piece_));
    float* memory = staging_.data();
    for (Lane& lane : lanes_)
      for (std::size_t i = 0; i < parts; ++i, memory += piece_) lane.host.push_back(memory);
  }

  /// Room for one more; operations under way are referred to by lanes, so a full queue is emptied instead of enlarged.
  Operation& enqueue() {
    if (submitted_ - completed_ == operations_.size()) finish(completed_ + 1);
    if (submitted_ == completed_) pending_.restart();
    return at(++submitted_);
  }

  void require_tree(std::span<const Part> parts) const {
    bool same = parts.size() == nodes_.size();
    for (std::size_t i = 0; same && i < nodes_.size(); ++i)
      same = parts[i].first == nodes_[i].first && parts[i].size == nodes_[i].size;
    require(same, "the parts of a reproducible sum are the nodes of this rank's run");
  }

  /// out = sum of this rank's parts. From the last one back, which for the nodes of all replicas is the order of the
  /// tree. False: there was nothing to do.
  bool add_here(const Reduction& r) {
    if (r.parts.empty()) {
      device_.fill(r.out, r.count, 0.0F);
      return true;
    }
    std::size_t first = r.parts.size() - 1;
    for (std::size_t i = 0; i < r.parts.size(); ++i)
      if (r.parts[i].data == r.out) first = i;
    require(!spec_.reproducible || first == r.parts.size() - 1,
            "a reproducible sum on one rank goes into the last part or beside the parts");
    if (r.parts[first].data != r.out) device_.copy(r.out, r.parts[first].data, r.count, 1.0F);
    for (std::size_t i = r.parts.size(); i-- > 0;)
      if (i != first) device_.add(r.out, r.parts[i].data, r.count);
    return r.parts.size() > 1 || r.parts[first].data != r.out;
  }

  /// Moves everything that can move.
  void advance() {
    if (ranks_ > 1 && completed_ < submitted_) {
      load_pieces();
      start_pieces();
      move_pieces();
    }
    for (; completed_ < submitted_; ++completed_) {
      const Operation& operation = oldest();
      if (operation.moved < operation.count) break;
      if (ranks_ > 1 && spec_.delay_seconds > 0 && operation.count > 0 &&
          seconds_since(operation.started) < spec_.delay_seconds)
        break;
      pending_.restart();
    }
    loading_ = std::max(loading_, completed_ + 1);
  }

  Lane& lane(std::uint64_t piece) { return lanes_[piece % lane_count]; }

  void load_pieces() {
    for (; loading_ <= submitted_; ++loading_) {
      Operation& operation = at(loading_);
      while (operation.begun < operation.count) {
        if (loaded_ - retired_ == lane_count && !retire_piece()) return;
        load(lane(loaded_++), operation);
      }
    }
  }

  void load(Lane& piece, Operation& operation) {
    piece.operation = &operation;
    piece.begin = operation.begun;
    piece.count = std::min(piece_, operation.count - operation.begun);
    piece.done = false;
    piece.event = operation.ready;
    operation.begun += piece.count;
    piece.parts.clear();
    for (std::size_t i = 0; i < operation.parts.size(); ++i) {
      const float* part = operation.parts[i] + piece.begin;
      if (!piece.host.empty()) {
        piece.event = device_.download(piece.host[i], part, piece.count, operation.ready);
        part = piece.host[i];
      }
      piece.parts.push_back(part);
    }
  }

  /// The same order on every rank.
  void start_pieces() {
    for (; started_ < loaded_; ++started_) {
      Lane& piece = lane(started_);
      if (!passed(piece.event)) return;
      Operation& operation = *piece.operation;
      if (piece.begin == 0) operation.started = Clock::now();
      float* out = piece.host.empty() ? operation.out + piece.begin : piece.host.front();
      exchange_->start(started_ % lane_count, out, piece.parts, piece.count, operation.what);
    }
  }

  void move_pieces() {
    for (std::uint64_t i = retired_; i < started_; ++i) {
      Lane& piece = lane(i);
      if (piece.done || !exchange_->advance(i % lane_count, piece.operation->what)) continue;
      piece.done = true;
      piece.event = {};
      if (!piece.host.empty())
        piece.event = device_.upload(piece.operation->out + piece.begin, piece.host.front(), piece.count);
      piece.operation->moved += piece.count;
    }
  }

  /// A lane is free once the device has read its staging memory.
  bool retire_piece() {
    if (retired_ == started_ || !lane(retired_).done || !passed(lane(retired_).event)) return false;
    ++retired_;
    return true;
  }

  const StallPolicy& policy_;
  Device& device_;
  const CollectivesSpec spec_;
  int ranks_ = 1;
  ReplicaRun run_;
  std::vector<TreeNode> nodes_;
  Index piece_ = 0;
  std::unique_ptr<Exchange> exchange_;
  std::vector<float> staging_;
  std::vector<Lane> lanes_;
  std::uint64_t loaded_ = 0, started_ = 0, retired_ = 0;  ///< numbers of pieces: retired <= started <= loaded
  std::vector<Operation> operations_;                     ///< ring; an operation's number is its ticket
  Ticket submitted_ = 0, completed_ = 0, loading_ = 1;
  Patience pending_;
  double waited_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Collectives> make_mpi_collectives(Communicator& communicator, Device& device,
                                                  const CollectivesSpec& spec) {
  return std::make_unique<MpiCollectives>(communicator.state_->comm, communicator.state_->policy, device, spec);
}

std::unique_ptr<Collectives> make_collectives(const std::string& backend, Communicator& communicator, Device& device,
                                              const CollectivesSpec& spec) {
  if (backend == "nccl") {
    fail(Exit::device, "--backend nccl is not possible (this build has no CUDA module); use --backend mpi");
  }
  return make_mpi_collectives(communicator, device, spec);
}

}  // namespace convoy
