// SPDX-License-Identifier: Apache-2.0
// Local SGD: every replica updates a set of its own, and every few steps the sets are averaged (Stich, "Local SGD
// converges fast and communicates little", ICLR 2019; post-local SGD: Lin et al., ICLR 2020).
#include <algorithm>
#include <optional>
#include <utility>

#include "core/hash.hpp"
#include "core/trace.hpp"
#include "sync/group_average.hpp"
#include "sync/modes.hpp"
#include "sync/outer_optimiser.hpp"
#include "sync/set_average.hpp"

namespace convoy {
namespace {

class WeightSync final : public Sync {
 public:
  WeightSync(const SyncSpec& spec, const SyncParts& parts)
      : spec_(spec),
        parts_(parts),
        run_(deal_replicas(spec.replicas, spec.ranks, spec.rank)),
        samples_(static_cast<std::size_t>(run_.count), 0),
        outer_(make_outer(spec, parts)),
        average_(spec, parts, run_, spec.wire == Wire::fp32 ? nullptr : outer_->anchor()) {
    for (int i = 0; i < run_.count; ++i)
      sets_.push_back({parts.backend.allocate(parts.layout.count()), parts.layout.count()});
    if (spec.group.is_on() && run_.count > 0) group_.emplace(spec, parts, run_);
  }

  /// A rank without replicas has the averaged set only.
  ParameterSet& set(int replica) override {
    if (sets_.empty()) return average_.set();
    return replica < 0 ? sets_.back() : sets_.at(static_cast<std::size_t>(replica - run_.first));
  }

  std::span<const ParameterSet> sets() const override {
    return sets_.empty() ? std::span<const ParameterSet>(&average_.set(), 1) : std::span<const ParameterSet>(sets_);
  }

  ParameterSet outer() const override { return outer_ ? outer_->state() : ParameterSet{}; }

  float scale(Index replica_samples, Index) const override {
    return replica_samples > 0 ? static_cast<float>(1.0 / static_cast<double>(replica_samples)) : 0.0F;
  }

  bool capturable(int) const override { return true; }

  void begin_replica(int replica, Index samples, Index) override {
    if (under_way_) parts_.collectives.poll();  // ready() is not called where steps are replayed
    replicas_are_equal_ = values_are_current_ = optimiser_is_current_ = false;
    if (replica >= 0) samples_.at(static_cast<std::size_t>(replica - run_.first)) += samples;
  }

  void ready(std::size_t, const ReadyRange&, int) override {
    if (under_way_) parts_.collectives.poll();
  }

  void replica_done(int replica, Index samples, Updater& optimiser) override {
    if (replica < 0 || samples == 0) return;
    const TraceSpan span("update");
    optimiser.launch(set(replica), parts_.gradients);
  }

  void step_done(Index step) override {
    if (received_is_old_) received_.reset();
    received_is_old_ = received_.has_value();
    const bool due = (step + 1) % spec_.local_steps == 0 || step < spec_.local_start;
    // One replica is its own average, but what an outer optimiser makes of it is another set (Lookahead).
    const bool changes_sets = spec_.replicas > 1 || spec_.outer.is_on();
    if (!due && group_ && (step + 1) % spec_.group.steps == 0) group_->average(sets_, samples_);
    if (changes_sets && due && spec_.overlap && step >= spec_.local_start) return average_late();
    if (!changes_sets || !due || !average_.weigh(sets_, samples_)) return;
    average_.take_values(sets_);
    if (spec_.momentum == MomentumPolicy::average) average_.take_optimiser(sets_);
    if (spec_.momentum == MomentumPolicy::reset) average_.clear_optimiser();
    average_.finish();
    if (outer_ && step < spec_.local_start) outer_->follow(average_.set());
    if (outer_ && step >= spec_.local_start) outer_->step(average_.set());
    for (const ParameterSet& set : sets_) {
      average_.copy_to(
          set, spec_.momentum == MomentumPolicy::keep ? SetAverage::Optimiser::keep : SetAverage::Optimiser::replace);
      parts_.backend.refresh(set);
    }
    std::fill(samples_.begin(), samples_.end(), 0);
    replicas_are_equal_ = values_are_current_ = true;
    optimiser_is_current_ = spec_.momentum != MomentumPolicy::keep || parts_.layout.slots.empty();
    compute_copies_are_current_ = false;
  }

  ParameterSet& averaged() override {
    if (is_alone()) return sets_.front();
    average(AverageOf::everything);
    if (!compute_copies_are_current_) parts_.backend.refresh(average_.set());
    compute_copies_are_current_ = true;
    return average_.set();
  }

  const ParameterSet& averaged_weights() override {
    if (is_alone()) return sets_.front();
    average(AverageOf::weights);
    return average_.set();
  }

  void adopt(const ParameterSet& model) override {
    for (const ParameterSet& set : sets_) {
      copy_model(parts_, model, set);
      parts_.backend.refresh(set);
    }
    if (is_alone()) return;
    copy_model(parts_, model, average_.set());
    compute_copies_are_current_ = false;
    if (outer_) outer_->follow(average_.set());
  }

  std::vector<Index> samples_since_average() const override { return samples_; }

  void restore(const std::vector<Index>& samples_since_average) override {
    if (std::exchange(under_way_, false)) average_.finish();  // its sets no longer exist
    require(samples_since_average.size() == samples_.size(), "one number of samples for each replica of the rank");
    samples_ = samples_since_average;
    replicas_are_equal_ = values_are_current_ = optimiser_is_current_ = false;
  }

  bool values_are_current() const override { return spec_.replicas == 1 || replicas_are_equal_; }

  bool replicas_are_equal() const override { return replicas_are_equal_; }

  void digest_next_average() override { digest_wanted_ = true; }
  std::optional<std::uint64_t> received_digest() const override { return received_; }

  /// A momentum of its own makes a replica differ from the others even after an average.
  bool needs_shards() const override {
    const bool own_momentum = spec_.momentum == MomentumPolicy::keep && !parts_.layout.slots.empty();
    return spec_.replicas > 1 && (!replicas_are_equal_ || own_momentum);
  }

 private:
  enum class AverageOf : std::uint8_t { weights, everything };

  static std::optional<OuterOptimiser> make_outer(const SyncSpec& spec, const SyncParts& parts) {
    return needs_anchor(spec) ? std::make_optional<OuterOptimiser>(spec.outer, parts) : std::nullopt;
  }

  /// Collective. The average that was under way reaches the replicas, and one of their present weights starts. A
  /// replica keeps its own steps since: x = average + (x - what it gave to it).
  void average_late() {
    finish_late();
    const Range& values = parts_.layout.trained;
    for (const ParameterSet& set : sets_) {
      parts_.backend.add(set.block + values.begin, correction(set), values.count);
      parts_.backend.refresh(set);
      parts_.backend.copy(correction(set), set.block + values.begin, values.count, 1.0F);
    }
    if (!average_.weigh(sets_, samples_)) average_.weigh_alike();
    average_.take_values(sets_);
    std::fill(samples_.begin(), samples_.end(), 0);
    under_way_ = true;
    replicas_are_equal_ = values_are_current_ = optimiser_is_current_ = compute_copies_are_current_ = false;
  }

  /// Collective. Waits for the average that is under way; then the slots hold each replica's correction.
  void finish_late() {
    if (!std::exchange(under_way_, false)) return;
    average_.finish();
    if (std::exchange(digest_wanted_, false)) {
      received_ = digest_of_average();
      received_is_old_ = false;
    }
    const Range& values = parts_.layout.trained;
    for (const ParameterSet& set : sets_) {
      parts_.backend.copy(correction(set), correction(set), values.count, -1.0F);
      parts_.backend.add(correction(set), average_.set().block + values.begin, values.count);
    }
  }

  /// Of what is summed: the next average overwrites it.
  std::uint64_t digest_of_average() {
    std::uint64_t digest = 0;
    for (const Range& range : {parts_.layout.trained, parts_.layout.moving}) {
      const float* from = average_.set().block + range.begin;
      if (parts_.backend.host_reads()) {
        parts_.collectives.await(parts_.backend.record(), "average to be checked");
      } else {
        host_.resize(static_cast<std::size_t>(range.count));
        parts_.collectives.await(parts_.backend.download(host_.data(), from, range.count, parts_.backend.record()),
                                 "average to be checked");
        from = host_.data();
      }
      digest = hash_bytes(from, static_cast<std::size_t>(range.count) * sizeof(float), digest);
    }
    return digest;
  }

  float* correction(const ParameterSet& set) const {
    return set.block + parts_.layout.slot(parts_.layout.slots.size() - 1).begin;
  }

  bool is_alone() const { return spec_.replicas == 1 && spec_.ranks == 1; }

  /// Collective. Brings the averaged set up to date.
  void average(AverageOf what) {
    const bool values = !values_are_current_, optimiser = what == AverageOf::everything && !optimiser_is_current_;
    if (!values && !optimiser) return;
    finish_late();
    if (values) {
      // Averaging equal replicas is exact only where their number is a power of two: without new samples take one.
      if (!average_.weigh(sets_, samples_)) spec_.overlap ? average_.weigh_alike() : average_.weigh_one();
      average_.take_values(sets_);
      values_are_current_ = true;
    }
    if (optimiser) {
      average_.take_optimiser(sets_);
      optimiser_is_current_ = true;
    }
    average_.finish();
    if (optimiser && spec_.overlap)  // the replicas' corrections add up to 0
      parts_.backend.fill(correction(average_.set()), parts_.layout.trained.count, 0.0F);
    compute_copies_are_current_ = false;
  }

  SyncSpec spec_;
  SyncParts parts_;
  ReplicaRun run_;
  std::vector<ParameterSet> sets_;       ///< one for each owned replica
  std::vector<Index> samples_;           ///< of each since the last average
  std::optional<OuterOptimiser> outer_;  ///< or its anchor alone
  SetAverage average_;
  std::optional<GroupAverage> group_;
  bool under_way_ = false;  ///< an average that reaches the replicas later; the slots hold what they gave to it
  std::optional<std::uint64_t> received_;
  bool digest_wanted_ = false, received_is_old_ = false;  ///< old: of an earlier step
  std::vector<float> host_;                               ///< of a device whose memory the host can't read
  // The same on all ranks at any time, since they follow the calls alone: they decide about collectives.
  bool replicas_are_equal_ = false;
  bool values_are_current_ = false, optimiser_is_current_ = false;  ///< of the averaged set
  bool compute_copies_are_current_ = false;
};

}  // namespace

Index weight_sum_floats(const SyncSpec& spec, const SetLayout& layout) {
  const ReplicaRun run = deal_replicas(spec.replicas, spec.ranks, spec.rank);
  Index floats = average_floats(spec, layout, run) - layout.count();  // its set is one of parameter_sets()
  if (spec.group.is_on() && run.count > 0) floats += group_average_floats(spec, layout, run);
  if (needs_anchor(spec)) floats += change_floats(layout);
  return floats;
}

std::unique_ptr<Sync> make_weight_sync(const SyncSpec& spec, const SyncParts& parts) {
  return std::make_unique<WeightSync>(spec, parts);
}

}  // namespace convoy
