// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/module.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "comm/collectives.hpp"
#include "comm/nccl/nccl_comm.hpp"
#include "comm/nccl/nccl_tree.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/version.hpp"

namespace convoy {
namespace {

/// 16 MB: beyond it NCCL does what it does for larger sums.
constexpr Index largest_warm_up = 1 << 22;

class NcclCollectives final : public Collectives {
 public:
  NcclCollectives(const NcclJob& job, const StallPolicy& policy, Device& device, const CollectivesSpec& spec)
      : policy_(policy),
        device_(device),
        queue_(*device.communication()),
        local_(device, tree_nodes(deal_replicas(spec.replicas, job.ranks, job.rank)), spec.reproducible),
        rank_(job.rank),
        sums_(job.ranks > 1 || std::getenv("CONVOY_NCCL_ALONE") != nullptr),
        reproducible_(spec.reproducible),
        wire_(spec.wire),
        max_wire_count_(std::max<Index>(spec.max_wire_count > 0 ? spec.max_wire_count : spec.max_count, 1)),
        comm_(job, policy) {
    if (sums_ && adds_in_tree(Transport::nccl, spec.reproducible, spec.wire))
      tree_.emplace(comm_, device,
                    NcclTree::Spec{.replicas = spec.reproducible ? spec.replicas : job.ranks,
                                   .rank = job.rank,
                                   .ranks = job.ranks,
                                   .max_count = spec.max_count,
                                   .wire = spec.wire,
                                   .rounds_nodes = spec.reproducible});
    else if (sums_ && spec.wire != Wire::fp32)
      halves_ = reinterpret_cast<std::uint16_t*>(device.allocate((max_wire_count_ + 1) / 2));
    warm_up(std::clamp<Index>(spec.max_count, 1, largest_warm_up));
  }

  /// Graphs that are still kept would hold up the end of the communicator for ever.
  ~NcclCollectives() override { queue_.forget_graphs(); }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  Ticket submit(const Reduction& reduction) override {
    Operation& operation = operations_[++submitted_ % operations_.size()];
    operation = {.what = reduction.what, .captured = sums_ && queue_.capturing()};
    if (reproducible_ && sums_) {
      local_.require_tree(reduction.parts);
      queue_.follow(reduction.after);
      tree_->sum(reduction);
    } else {
      const bool added = local_.add(reduction);
      if (!sums_) return submitted_;
      queue_.follow(added ? device_.record() : reduction.after);
      if (reduction.wire == Wire::fp32)
        all_reduce(reduction.out, reduction.count, reduction.what);
      else
        add_over_ranks(reduction);
    }
    operation.done = queue_.record();
    return submitted_;
  }

  void end() override {
    queue_.forget_graphs();
    comm_.finalize();
  }

  bool capturable() const override { return true; }
  void poll() override { comm_.check("all-reduces of the ranks"); }

  void finish(Ticket ticket) override {
    if (const Event done = end_of(ticket); done.id != 0) device_.follow(done);
  }

  Event read(Ticket ticket, float* host, const float* from, Index n) override {
    return device_.download(host, from, n, sums_ ? end_of(ticket) : device_.record());
  }

  void await(Event event, const char* what) override {
    if (event.id == 0 || device_.done(event)) return;
    const auto begin = policy_.clock->now();
    Deadline deadline(policy_);
    try {
      while (!device_.done(event)) {
        comm_.check(what);
        deadline.pause(what);
      }
    } catch (const Error& e) {
      const std::string missing = unfinished();
      // Without this the streams would wait for ever, and whoever frees them too.
      queue_.forget_graphs();
      comm_.abort();
      if (missing.empty()) throw;
      fail(e.code(), "{} (NCCL has not finished {})", e.what(), missing);
    }
    waited_seconds_ += seconds_between(begin, policy_.clock->now());
  }

  double take_wait_seconds() override { return std::exchange(waited_seconds_, 0.0); }

 private:
  struct Operation {
    const char* what = "";
    bool captured = false;
    Event done;
  };

  /// The queue keeps its order, so a later operation's end will do for one that the ring has forgotten.
  Event end_of(Ticket ticket) const {
    require(ticket <= submitted_, "finish of a reduction that was submitted");
    const Ticket kept = submitted_ < operations_.size() ? 1 : submitted_ - operations_.size() + 1;
    return operations_[std::max(ticket, kept) % operations_.size()].done;
  }

  void all_reduce(float* out, Index count, const char* what) {
    if (count == 0) return;
    comm_.issued(ncclAllReduce(out, out, static_cast<std::size_t>(count), ncclFloat, ncclSum, comm_.get(),
                               static_cast<cudaStream_t>(queue_.stream())),
                 "ncclAllReduce", what);
  }

  /// `out` is this rank's sum.
  void add_over_ranks(Reduction reduction) {
    if (halves_ != nullptr) return add_halves(reduction);
    require(tree_.has_value(), "a format that the sums were not made for");
    const Part own{rank_, 1, reduction.out};
    reduction.parts = std::span(&own, 1);
    tree_->sum(reduction);
  }

  /// By NCCL itself. Sums of one queue come one after the other, so that one buffer serves all.
  void add_halves(const Reduction& reduction) {
    require(reduction.count <= max_wire_count_, "a sum that is longer than the buffer");
    if (reduction.count == 0) return;
    queue_.narrow(halves_, reduction.out, reduction.count, reduction.wire);
    comm_.issued(ncclAllReduce(halves_, halves_, static_cast<std::size_t>(reduction.count), ncclBfloat16, ncclSum,
                               comm_.get(), static_cast<cudaStream_t>(queue_.stream())),
                 "ncclAllReduce", reduction.what);
    queue_.widen(reduction.out, halves_, reduction.count, reduction.wire);
  }

  /// NCCL connects its ranks at the first sum of a kind: not in the first step, and not while it is captured. Its
  /// result is nobody's, so it waits for nothing.
  void warm_up(Index count) {
    constexpr const char* what = "first all-reduce of NCCL";
    float* const block = device_.allocate(count);
    if (reproducible_ && tree_) {
      std::vector<Part> parts;
      for (const TreeNode& node : local_.nodes()) parts.push_back({node.first, node.size, block});
      tree_->sum({.out = block, .parts = parts, .count = count, .what = what});
    } else {
      all_reduce(block, 1, what);
      if (sums_) all_reduce(block, count, what);
      if (sums_ && wire_ != Wire::fp32)
        add_over_ranks({.out = block, .count = std::min(count, max_wire_count_), .what = what, .wire = wire_});
    }
    await(queue_.record(), what);
  }

  /// The oldest operation that the device has not finished. Those that are replayed can't be told apart.
  std::string unfinished() {
    const Ticket kept = submitted_ < operations_.size() ? 1 : submitted_ - operations_.size() + 1;
    for (Ticket ticket = kept; ticket <= submitted_; ++ticket) {
      const Operation& operation = operations_[ticket % operations_.size()];
      if (operation.captured) return "the all-reduces of a captured step";
      if (operation.done.id != 0 && !device_.done(operation.done)) return operation.what;
    }
    return {};
  }

  const StallPolicy& policy_;
  Device& device_;
  CommunicationQueue& queue_;
  LocalSum local_;
  const int rank_;
  const bool sums_;  ///< whether NCCL is called; a lone rank calls it only for a check: CONVOY_NCCL_ALONE
  const bool reproducible_;
  const Wire wire_;
  const Index max_wire_count_;
  std::uint16_t* halves_ = nullptr;  ///< where NCCL adds in 16 bits
  NcclComm comm_;
  std::optional<NcclTree> tree_;
  std::array<Operation, 256> operations_{};  ///< ring by ticket
  Ticket submitted_ = 0;
  double waited_seconds_ = 0;
};

/// Collective. Sums by NCCL on the device's communication queue: nothing between submit and finish waits for the host,
/// so they may be captured. One rank makes a communicator, which shows that NCCL works, and no traffic, unless
/// CONVOY_NCCL_ALONE is set: then it sums over itself, so that one GPU shows NCCL in captured steps.
std::unique_ptr<Collectives> make_collectives_here(const NcclJob& job, const StallPolicy& policy, Device& device,
                                                   const CollectivesSpec& spec) {
  require(device.communication() != nullptr, "NCCL needs a device with a communication queue");
  return std::make_unique<NcclCollectives>(job, policy, device, spec);
}

}  // namespace
}  // namespace convoy

extern "C" const convoy::NcclEntry* convoy_nccl_entry() {
  static const std::string build = convoy::build_id() + ", " + convoy::compiler();
  static const convoy::NcclEntry entry{
      .build = build.c_str(), .make_id = convoy::make_nccl_id, .make = convoy::make_collectives_here};
  return &entry;
}
