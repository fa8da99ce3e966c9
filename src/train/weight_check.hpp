// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "train/arithmetic_verdict.hpp"
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Of values and running statistics. `block`: a set.
std::uint64_t digest_of(const std::vector<float>& block, const SetLayout& layout);

/// What all ranks must hold alike, and this rank's digest of it.
struct CommonBits {
  std::uint64_t digest = 0;
  bool is_late_average = false;
};
/// The weights where all replicas have the same, also right after an average; with --overlap-average the average that
/// was received last. Nothing, on all ranks alike: weights between two averages. `host`: memory for a set.
std::optional<CommonBits> common_bits(TrainingJob& job, std::vector<float>& host);
/// Collective. The ranks whose bits differ from those of most hosts; nothing: all hold the same.
std::optional<Verdict> compare_ranks(Communicator& communicator, const CommonBits& own);

/// Every so many steps, or at the first average after them.
class Due {
 public:
  /// `every`: 0: never.
  explicit Due(Index every) : every_(every) {}
  /// Whether something is due after `step` steps. At first at a multiple of `every`.
  bool is_due(Index step);
  /// The same before that step, once is_due() has been asked.
  bool will_be_due(Index step) const { return next_ >= 0 && step >= next_; }
  void done(Index step) { next_ = (step / every_ + 1) * every_; }

 private:
  Index every_, next_ = -1;
};

/// Compares digests of the weights between ranks and replicas, where they have to be the same (--check-weights). A
/// difference ends the job as wrong arithmetic does.
class WeightCheck final : public Observer {
 public:
  explicit WeightCheck(TrainingJob& job);
  /// Late averages are digested only if a comparison is due.
  void step_begins(const LoopState& state) override;
  /// Collective.
  void step_done(LoopState& state) override;

 private:
  /// Collective. Throws AgreedError.
  void compare_replicas(std::uint64_t first);
  /// Collective. Throws AgreedError.
  [[noreturn]] void leave(Verdict verdict);

  TrainingJob& job_;
  Due due_;
  Index passed_step_ = -1;  ///< the last one after which all was well, or from which the attempt went on
  std::vector<float> host_;
};

}  // namespace convoy
