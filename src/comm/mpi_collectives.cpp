// SPDX-License-Identifier: Apache-2.0
// Reductions wait in a queue, are cut into pieces, and the pieces go through a few lanes: [download], exchange,
// [upload].
#include <algorithm>
#include <chrono>
#include <climits>
#include <numeric>
#include <optional>

#include "comm/collectives.hpp"
#include "comm/exchange.hpp"
#include "comm/state.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/trace.hpp"

namespace convoy {
namespace {

struct Operation {
  float* out = nullptr;
  std::vector<const float*> parts;
  Index count = 0;
  Index begun = 0, moved = 0;  ///< elements given to lanes, and back from them
  Event ready;
  const char* what = "";
  Wire wire = Wire::fp32;
  Instant started;
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
  MpiCollectives(Communicator& communicator, MPI_Comm comm, const StallPolicy& policy, Device& device,
                 const CollectivesSpec& spec)
      : policy_(policy), device_(device), spec_(spec), queue_(device.communication()), pending_(policy) {
    int rank = 0;
    check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank", "start-up");
    check_mpi(MPI_Comm_size(comm, &ranks_), "MPI_Comm_size", "start-up");
    require(spec.chunk_floats > 0 && spec.chunk_floats <= INT_MAX, "chunk limit of collectives");
    local_.emplace(device, tree_nodes(deal_replicas(spec.replicas, ranks_, rank)), spec.reproducible);
    operations_.resize(64);
    for (Operation& operation : operations_) operation.parts.reserve(most_parts());
    if (ranks_ == 1) return;
    piece_ = std::min(spec.chunk_floats, piece_floats);
    if (spec.max_count > 0) piece_ = std::min(piece_, align_floats(spec.max_count));
    const bool direct = spec.memory == MpiMemory::device && queue_ != nullptr;
    // No MPI adds in device memory without blocking, nor knows 16-bit floats: a tree over the ranks' sums does.
    if (direct || adds_in_tree(Transport::mpi, spec.reproducible, spec.wire))
      exchange_ = make_tree_sum(comm, {.lanes = lane_count,
                                       .replicas = spec.reproducible ? spec.replicas : ranks_,
                                       .piece = piece_,
                                       .device = direct ? &device : nullptr,
                                       .wire = spec.wire,
                                       .rounds_nodes = spec.reproducible});
    else
      exchange_ = make_host_sum(communicator, comm);
    make_lanes(direct || device.host_reads());
    if (spec.gathers) gather_ = duplicate(comm, "start-up");
    offsets_.resize(static_cast<std::size_t>(ranks_));
  }

  Ticket submit(const Reduction& reduction) override {
    Operation& operation = enqueue();
    operation.out = reduction.out;
    operation.count = reduction.count;
    operation.begun = operation.moved = 0;
    operation.what = reduction.what;
    operation.wire = reduction.wire;
    operation.ready = reduction.after;
    operation.parts.clear();
    if (spec_.reproducible) local_->require_tree(reduction.parts);
    if (ranks_ == 1) {
      local_->add(reduction);
      operation.moved = reduction.count;
    } else if (spec_.reproducible) {
      for (const Part& part : reduction.parts) operation.parts.push_back(part.data);
    } else {
      if (local_->add(reduction)) operation.ready = device_.record();
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
    if (completed_ < ticket) wait_for(ticket);
    // Uploads on the communication queue keep their order.
    if (std::exchange(unfollowed_, false)) device_.follow(uploaded_);
  }

  Event read(Ticket ticket, float* host, const float* from, Index n) override {
    require(ticket <= submitted_, "reading of a reduction that was submitted");
    if (completed_ < ticket) wait_for(ticket);
    return device_.download(host, from, n, ranks_ == 1 || queue_ == nullptr ? device_.record() : uploaded_);
  }

  void await(Event event, const char* what) override {
    if (passed(event)) return;
    const TraceSpan span(what);
    const auto begin = policy_.clock->now();
    Deadline deadline(policy_);
    while (!passed(event)) {
      advance();
      deadline.pause(what);
    }
    waited_seconds_ += seconds_between(begin, policy_.clock->now());
  }

  void gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int> bytes,
              const char* what) override {
    if (ranks_ == 1) {
      std::copy(own.begin(), own.end(), all.begin());
      return;
    }
    require(spec_.gathers, "messages of all ranks by collectives that were made for them");
    const TraceSpan span(what);
    const auto begin = policy_.clock->now();
    require(bytes.size() == offsets_.size(), "a message of each rank");
    std::exclusive_scan(bytes.begin(), bytes.end(), offsets_.begin(), 0);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgatherv(own.data(), static_cast<int>(own.size()), MPI_BYTE, all.data(), bytes.data(),
                              offsets_.data(), MPI_BYTE, gather_, &request),
              "MPI_Iallgatherv", what);
    Deadline deadline(policy_);
    for (int arrived = 0;;) {
      check_mpi(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test", what);
      if (arrived != 0) break;
      advance();
      deadline.pause(what);
    }
    gathered_bytes_ += static_cast<Index>(own.size()) * (ranks_ - 1);
    waited_seconds_ += seconds_between(begin, policy_.clock->now());
  }

  double take_wait_seconds() override { return std::exchange(waited_seconds_, 0.0); }

  std::optional<Index> sent_bytes() const override {
    return exchange_ ? exchange_->sent_bytes() + gathered_bytes_ : gathered_bytes_;
  }

 private:
  void wait_for(Ticket ticket) {
    const TraceSpan span("wait for the all-reduce");
    const auto begin = policy_.clock->now();
    Deadline deadline(policy_);
    for (Ticket seen = completed_;;) {
      advance();
      if (completed_ >= ticket) break;
      if (seen != completed_) deadline.restart();
      seen = completed_;
      deadline.pause(oldest().what);
    }
    waited_seconds_ += seconds_between(begin, policy_.clock->now());
  }

  bool passed(Event event) { return event.id == 0 || device_.done(event); }
  Operation& at(Ticket ticket) { return operations_[ticket % operations_.size()]; }
  Operation& oldest() { return at(completed_ + 1); }

  /// In the memory of the host if the ranks can share it, then in pieces that are smaller for many ranks; otherwise by
  /// the library.
  std::unique_ptr<Exchange> make_host_sum(Communicator& communicator, MPI_Comm comm) {
    if (spec_.host_sums != HostSums::library) {
      const Index piece = shared_piece(ranks_, lane_count, piece_);
      SharingResult shared = share_memory(communicator, shared_sum_bytes(ranks_, lane_count, piece));
      if (shared.memory) {
        piece_ = piece;
        return make_shared_sum(std::move(shared.memory), communicator, lane_count, piece);
      }
      if (spec_.host_sums == HostSums::shared_memory_only)
        fail(Exit::usage, "--backend shared is not possible ({}); use --backend auto", shared.problem);
      if (communicator.rank() == 0 && communicator.node_size() == ranks_)
        log::warn("the all-reduce goes through MPI, which is slower inside a host ({})", shared.problem);
    }
    return make_all_reduce(comm, lane_count);
  }

  std::size_t most_parts() const { return spec_.reproducible ? std::max<std::size_t>(local_->nodes().size(), 1) : 1; }

  void make_lanes(bool in_place) {
    lanes_.resize(lane_count);
    for (Lane& lane : lanes_) lane.parts.reserve(most_parts());
    if (in_place) return;
    const std::size_t floats = lane_count * most_parts() * static_cast<std::size_t>(piece_);
    float* memory = device_.allocate_host(static_cast<Index>(floats));
    if (memory == nullptr) {
      staging_.resize(floats);
      memory = staging_.data();
    }
    for (Lane& lane : lanes_)
      for (std::size_t i = 0; i < most_parts(); ++i, memory += piece_) lane.host.push_back(memory);
  }

  /// Room for one more; operations under way are referred to by lanes, so a full queue is emptied instead of enlarged.
  Operation& enqueue() {
    if (submitted_ - completed_ == operations_.size()) finish(completed_ + 1);
    if (submitted_ == completed_) pending_.restart();
    return at(++submitted_);
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
          seconds_between(operation.started, policy_.clock->now()) < spec_.delay_seconds)
        break;
      if (trace().is_on() && ranks_ > 1 && operation.count > 0) show(operation);
      pending_.restart();
    }
    loading_ = std::max(loading_, completed_ + 1);
  }

  /// In a trace, from the moment on when it alone was on its way: operations end in order.
  void show(const Operation& operation) {
    const Instant now = real_clock().now();
    trace().add({.name = operation.what,
                 .row = trace_row::sums,
                 .begin = std::max(operation.started, shown_),
                 .end = now,
                 .bytes = operation.count * bytes_of(operation.wire)});
    shown_ = now;
  }

  Lane& lane(std::uint64_t piece) { return lanes_[piece % lane_count]; }

  void load_pieces() {
    for (; loading_ <= submitted_; ++loading_) {
      Operation& operation = at(loading_);
      // The communication queue would wait for the parts, and with it the uploads of earlier operations.
      if (queue_ != nullptr && !passed(operation.ready)) return;
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
        download(piece, piece.host[i], part);
        part = piece.host[i];
      }
      piece.parts.push_back(part);
    }
    if (queue_ != nullptr && !piece.host.empty() && !piece.parts.empty()) piece.event = queue_->record();
  }

  void download(Lane& piece, float* host, const float* part) {
    if (queue_ == nullptr) {
      piece.event = device_.download(host, part, piece.count, piece.operation->ready);
      return;
    }
    queue_->download(host, part, piece.count);
  }

  void upload(Lane& piece) {
    float* const out = piece.operation->out + piece.begin;
    if (queue_ == nullptr) {
      piece.event = device_.upload(out, piece.host.front(), piece.count);
      return;
    }
    queue_->upload(out, piece.host.front(), piece.count);
    piece.event = uploaded_ = queue_->record();
    unfollowed_ = true;
  }

  /// The same order on every rank.
  void start_pieces() {
    for (; started_ < loaded_; ++started_) {
      Lane& piece = lane(started_);
      if (!passed(piece.event)) return;
      Operation& operation = *piece.operation;
      if (piece.begin == 0) operation.started = policy_.clock->now();
      float* out = piece.host.empty() ? operation.out + piece.begin : piece.host.front();
      exchange_->start(
          started_ % lane_count,
          {.out = out, .parts = piece.parts, .count = piece.count, .wire = operation.wire, .what = operation.what});
    }
  }

  void move_pieces() {
    for (std::uint64_t i = retired_; i < started_; ++i) {
      Lane& piece = lane(i);
      if (piece.done || !exchange_->advance(i % lane_count, piece.operation->what)) continue;
      piece.done = true;
      piece.event = {};
      if (!piece.host.empty()) upload(piece);
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
  CommunicationQueue* queue_ = nullptr;  ///< null: copies go through the device's own queue
  std::optional<LocalSum> local_;
  Index piece_ = 0;
  std::unique_ptr<Exchange> exchange_;
  std::vector<float> staging_;
  std::vector<Lane> lanes_;
  std::uint64_t loaded_ = 0, started_ = 0, retired_ = 0;  ///< numbers of pieces: retired <= started <= loaded
  std::vector<Operation> operations_;                     ///< ring; an operation's number is its ticket
  Ticket submitted_ = 0, completed_ = 0, loading_ = 1;
  Event uploaded_;           ///< the last upload
  bool unfollowed_ = false;  ///< the device's own queue does not follow it yet
  MPI_Comm gather_ = MPI_COMM_NULL;
  std::vector<int> offsets_;  ///< of the messages of all ranks
  Index gathered_bytes_ = 0;  ///< that this rank has sent
  Instant shown_;             ///< the end of the last operation in a trace
  Deadline pending_;
  double waited_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Collectives> make_mpi_collectives(Communicator& communicator, Device& device,
                                                  const CollectivesSpec& spec) {
  return std::make_unique<MpiCollectives>(communicator, communicator.state_->comm, communicator.state_->policy, device,
                                          spec);
}

}  // namespace convoy
