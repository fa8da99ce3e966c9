// SPDX-License-Identifier: Apache-2.0
// One set for all replicas: their gradients are summed in buckets while backward still runs, then the set is updated.
// With one replica a rank the buckets are reduced where the program wrote them.
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "core/trace.hpp"
#include "sync/compressed_sum.hpp"
#include "sync/modes.hpp"
#include "sync/replica_sum.hpp"

namespace convoy {
namespace {

/// How a rank adds its replicas' gradients.
ReplicaSumSpec sum_of(const SyncSpec& spec, const ParameterTable& table) {
  const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, spec.rank);
  const int turns = deal_replicas(spec.replicas, spec.ranks, 0).count;
  return {.run = run,
          .reproducible = spec.reproducible,
          // A rank with a turn too few is given a zeroed block in the last one.
          .last_leaf = run.count == turns ? LastLeaf::stays : LastLeaf::leaves,
          // What is compressed has sums of its own.
          .count = spec.compression.is_on() ? 0 : table.exchange.begin};
}

class GradientSync final : public Sync {
 public:
  GradientSync(const SyncSpec& spec, const SyncParts& parts)
      : parts_(parts),
        wire_(spec.wire),
        run_(deal_replicas(spec.replicas, spec.ranks, spec.rank)),
        turns_(deal_replicas(spec.replicas, spec.ranks, 0).count),
        replicas_(spec.replicas),
        ranks_(spec.ranks),
        sum_(parts.backend, parts.collectives, sum_of(spec, parts.plan.table), parts.gradients) {
    set_ = {parts.backend.allocate(parts.layout.count()), parts.layout.count()};
    if (spec.compression.is_on()) compressed_.emplace(spec, parts);
  }

  ParameterSet& set(int) override { return set_; }
  std::span<const ParameterSet> sets() const override { return {&set_, 1}; }

  float scale(Index, Index step_samples) const override {
    return step_samples > 0 ? static_cast<float>(1.0 / static_cast<double>(step_samples)) : 0.0F;
  }

  std::span<const ParameterSet> residuals() const override {
    return compressed_ ? compressed_->residuals() : std::span<const ParameterSet>();
  }
  ParameterSet bases() const override { return compressed_ ? compressed_->bases() : ParameterSet{}; }

  /// NCCL wants a sum captured by all ranks or by none. If a step's shares differ, some may be as large as a batch that
  /// was captured before, others are not: nobody captures such a step.
  bool capturable(int replica) const override {
    if (compressed_) return false;
    if (!is_last_turn(replica)) return true;
    return parts_.collectives.capturable() && (step_samples_ % replicas_ == 0 || ranks_ == 1);
  }

  void begin_replica(int, Index, Index step_samples) override { step_samples_ = step_samples; }

  void ready(std::size_t stage, const ReadyRange& part, int replica) override {
    if (part.range.count > 0) submit(stage, part, replica);
    parts_.collectives.poll();
  }

  void replica_done(int replica, Index, Updater& optimiser) override {
    if (compressed_ && replica >= 0) compressed_->add(replica);
    if (!is_last_turn(replica)) return;
    if (compressed_)
      compressed_->reduce(scale(0, step_samples_));
    else
      parts_.collectives.finish(std::exchange(last_, 0));
    const TraceSpan span("update");
    optimiser.launch(set_, parts_.gradients);
  }

  void step_done(Index) override {}
  ParameterSet& averaged() override { return set_; }
  const ParameterSet& averaged_weights() override { return set_; }
  void adopt(const ParameterSet& model) override {
    copy_model(parts_, model, set_);
    parts_.backend.refresh(set_);
  }
  std::vector<Index> samples_since_average() const override { return {}; }
  void restore(const std::vector<Index>&) override {}
  bool values_are_current() const override { return true; }
  bool replicas_are_equal() const override { return true; }
  /// Every replica has its own residual.
  bool needs_shards() const override { return compressed_.has_value(); }

 private:
  /// A rank with a turn too few has it last, without a replica.
  bool is_last_turn(int replica) const { return replica < 0 || replica - run_.first == turns_ - 1; }

  /// Collective.
  void submit(std::size_t stage, const ReadyRange& part, int replica) {
    if (part.range.begin >= parts_.plan.table.exchange.begin) return exchange(stage, part, replica);
    if (compressed_) return;  // once the replica's gradients are there
    if (wire_ == Wire::fp32) return sum(part.range, replica, name_of(stage, part.range), Wire::fp32);
    // Flags and statistics, which travel with the last bucket, stay what they are.
    const Index border = parts_.plan.table.trained_floats(), begin = part.range.begin, end = part.range.end();
    const Range gradients{begin, std::min(end, border) - begin}, tail{std::max(begin, border), end - border};
    if (gradients.count > 0) sum(gradients, replica, name_of(stage, part.range), wire_);
    if (tail.count > 0) sum(tail, replica, "batch statistics and flags", Wire::fp32);
  }

  /// Collective.
  void sum(const Range& range, int replica, const char* what, Wire wire) {
    if (replica >= 0) sum_.add(replica, range, wire);
    if (is_last_turn(replica)) last_ = sum_.reduce(range, what, wire);
  }

  /// Collective. Statistics of synchronised batch norm. Those that are needed together are given away together.
  void exchange(std::size_t stage, const ReadyRange& part, int replica) {
    together_.push_back({part.range, name_of(stage, part.range)});
    if (part.timing == SumTiming::overlapped) return;
    const Event after = parts_.backend.record();
    Ticket last = 0;
    for (const auto& [range, what] : together_) {  // one replica a rank (make_sync)
      float* const at = parts_.gradients + range.begin;
      const Part own{replica, 1, at};
      const std::span<const Part> parts(&own, replica >= 0 ? 1 : 0);
      last = parts_.collectives.submit({.out = at, .parts = parts, .count = range.count, .after = after, .what = what});
    }
    together_.clear();
    parts_.collectives.finish(last);
  }

  /// Names are made in the first step and kept, since the collectives refer to them.
  const char* name_of(std::size_t stage, const Range& range) {
    while (names_.size() <= stage) names_.emplace_back();
    std::string& name = names_[stage];
    if (!name.empty()) return name.c_str();
    const auto& buckets = parts_.plan.buckets;
    const auto bucket = std::find(buckets.begin(), buckets.end(), range);
    if (bucket == buckets.end())
      name = fmt::format("statistics of synchronised batch norm in stage {}", stage);
    else
      name = fmt::format("gradient bucket {}", bucket - buckets.begin());
    return name.c_str();
  }

  SyncParts parts_;
  Wire wire_;
  ReplicaRun run_;
  int turns_;                   ///< of every rank: the most replicas that one owns
  const int replicas_, ranks_;  ///< of the job
  ReplicaSum sum_;
  std::optional<CompressedSum> compressed_;
  ParameterSet set_;
  Ticket last_ = 0;
  Index step_samples_ = 0;                               ///< of the step that has begun
  std::vector<std::pair<Range, const char*>> together_;  ///< exchanges that wait for a blocking one
  std::deque<std::string> names_;
};

}  // namespace

Index gradient_sum_floats(const SyncSpec& spec, const ParameterTable& table) {
  const ReplicaSumSpec sum = sum_of(spec, table);
  return sum.count * ReplicaSum::slots(sum);
}

std::unique_ptr<Sync> make_gradient_sync(const SyncSpec& spec, const SyncParts& parts) {
  return std::make_unique<GradientSync>(spec, parts);
}

}  // namespace convoy
