// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "train/arithmetic_verdict.hpp"
#include "train/observer.hpp"
#include "train/weight_check.hpp"

namespace convoy {

struct TrainingJob;

/// Every --check-arithmetic steps the local step of one replica (losses and gradients, before any sum) is computed by
/// two more ranks, and by its own once more, and the bits are compared; so are the weights that all ranks should hold.
/// A difference ends the job with Exit::arithmetic (docs/adr/0035).
class ArithmeticCheck final : public Observer {
 public:
  /// Collective. Throws AgreedError if the bits of a step depend on more than the replica, or if no other rank can
  /// repeat it.
  explicit ArithmeticCheck(TrainingJob& job);

  void step_begins(const LoopState& state) override;
  /// Collective. In a step that is checked: the repetitions, before the step itself.
  void batch_ready(const LoopState& state, ReplicaBatch& batch) override;
  bool watches_stages(const LoopState& state) const override;
  void stage_done(const LoopState& state, const ReplicaBatch& batch, std::size_t stage) override;
  /// Collective.
  void step_done(LoopState& state) override;
  /// Rank 0 logs what was checked and what it cost.
  void tell() const;

 private:
  struct Received;  ///< a batch of another rank

  bool is_on() const { return every_ > 0; }
  bool is_due(const LoopState& state) const { return is_on() && state.working.step % every_ == 0; }
  /// Collective. Throws AgreedError.
  void refuse();
  bool repeats() const;
  /// Collective. Leaves the batch of the checked rank in `to`, with the weights to compute it with.
  void share_batch(const ReplicaBatch& own, Received& to);
  /// Collective. This rank's set, or that of the checked rank if the replicas differ.
  const ParameterSet& share_weights();
  std::uint64_t repeat(const Received& batch, const ParameterSet& weights);
  void digest_range(const Range& range, std::uint64_t& digest);
  void digest(const float* from, Index count, std::uint64_t& digest);
  /// Collective. Compares what all ranks must hold alike, at the first chance since the last step that was to be
  /// checked. Throws AgreedError.
  void compare_weights(const LoopState& state);
  /// Collective. Of each repeater, in order; `own` counts on those ranks.
  std::vector<std::uint64_t> gather(std::uint64_t own);
  std::string checked_by() const;  ///< `, which ranks 0, 2, 1 checked`
  /// Collective. Throws AgreedError.
  [[noreturn]] void leave(const Verdict& verdict, const LoopState& state, const std::string& checked_by = {});

  TrainingJob& job_;
  Index every_;
  Due weights_due_;
  std::vector<int> repeaters_;           ///< of the running step
  std::optional<std::uint64_t> agreed_;  ///< what they computed; none: this step isn't checked
  std::uint64_t own_ = 0;                ///< the checked rank's own step, as far as it has come
  std::optional<ParameterSet> other_;    ///< weights of another rank's replica
  std::vector<float> host_;              ///< weights, or gradients that the host can't read
  Index looked_at_step_ = -1;
  Index checks_ = 0,
        passed_step_ = -1;  ///< passed: the last step whose check found nothing, or the first of a resumed attempt
  double seconds_ = 0;      ///< that the checks took
  std::optional<Instant> begin_;  ///< of the first step
};

}  // namespace convoy
