// SPDX-License-Identifier: Apache-2.0
// When a run saves, what goes into a checkpoint, and how a run continues from one.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/resume.hpp"
#include "checkpoint/saver.hpp"
#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/clock.hpp"
#include "run/attempt.hpp"
#include "train/interval.hpp"

namespace convoy {

struct TrainingJob;

class Checkpointing {
 public:
  /// `job`: its members up to the moving average have been made.
  explicit Checkpointing(TrainingJob& job);

  /// Collective. Puts a checkpoint's state into the sets and returns where to continue. With the same replicas, batch
  /// and sync policy the run continues exactly; others start from the averaged model at the same fraction of the epoch,
  /// and it says so. Throws AgreedError, or Error the same on all ranks.
  Position resume(const FoundCheckpoint& found);
  /// Collective. Puts a checkpoint's weights, optimiser and averages into the sets of the run that goes on. Throws
  /// AgreedError, or Error the same on all ranks.
  void return_to(const FoundCheckpoint& found);
  /// The place of a checkpoint among the steps of this job: those of an attempt with another batch or other replicas
  /// count otherwise.
  Position place_of(const CheckpointMeta& meta) const;
  /// Whether a `best` that is too new moves aside, too: nobody resumes from it.
  enum class Best : std::uint8_t { moves, stays };
  /// Rank 0, between two saves. Moves checkpoints that were saved after `than` aside, so that no attempt goes on from
  /// one. The folder in which they are, empty: there were none. Nothing: no other would be left, and they stay. Throws
  /// Error(superseded) or Error(data).
  std::optional<std::string> put_newer_aside(const Stamp& than, Best best);

  /// Rank 0, when all is loaded: records from where the attempt goes on. Checkpoints of an earlier run, or of steps
  /// that a return to an older checkpoint has left, move aside with the first save. Throws Error(data).
  void leave_other_lines(const std::optional<FoundCheckpoint>& from);

  /// True where rank 0's clock asks for a save (--save-every-minutes); agreed by the trainer.
  bool minutes_are_up() const;
  /// A checkpoint from which a run continues exactly holds every replica's own state; the model alone is enough to
  /// evaluate.
  enum class Content : std::uint8_t { everything, model };
  /// Collective. Copies what goes into NAME.h5 and returns; a thread writes it, then drops older ones beyond
  /// --keep-checkpoints. Waits only where the save of an earlier step is still under way.
  void save(const std::string& name, const Position& position, Content content = Content::everything);
  /// For the agreement of every step.
  Index finished_parts() const { return saver_.finished_parts(); }
  /// Collective. What all ranks agreed on: lets saves go on, and takes note of those that are through.
  void advance(Index finished_parts);
  /// Collective. Waits for all saves. The code of the last one.
  Exit finish();
  /// Not ok, on all ranks alike: saves fail again and again, or a newer attempt has taken over.
  Exit trouble() const;
  /// How long a step takes: a stop must come that much earlier.
  void expect_step(double seconds);

  // These go into checkpoints and come back with them.
  double best_top1 = -1;
  Index validations_since_best = 0;
  Index validated_step = -1;  ///< steps done at the last validation
  JobSums sums_of_epoch;      ///< of the epoch in which the attempt began, up to there

  bool from_last = false;  ///< went on from last.h5 of the run's own folder

 private:
  CheckpointMeta describe(const Position& position, const JobSums& epoch) const;
  void take_results();
  void note(const SaveResult& result);
  /// Once, on rank 0: whether the launcher would end the job before it has saved.
  void tell_hasty_launcher();
  double interval_seconds() const;
  double guessed_cost() const;  ///< seconds of a save, before one has been measured
  std::vector<float> spare_memory();
  /// The set's floats from `first` on.
  void download(const ParameterSet& from, Index first, std::vector<float>& to, const char* what);
  /// What keeps a run from going on bit for bit, besides changed_parts(); empty: nothing.
  std::string what_differs(const CheckpointMeta& meta) const;

  TrainingJob& job_;
  Saver saver_;
  Instant saved_at_ = real_clock().now();
  std::shared_ptr<HostSet> averaged_, ema_, outer_, bases_;  ///< rank 0: the newest copies
  Index averaged_step_ = -1;                                 ///< that they were made at; known on all ranks
  std::vector<std::vector<float>> spare_;
  double cost_seconds_ = 0;  ///< rank 0: of a save, measured; 0: not yet
  double step_seconds_ = 0, stall_seconds_ = 0;
  bool told_haste_ = false;
  int failures_ = 0;  ///< in a row
  Exit last_code_ = Exit::ok;
  std::string aside_;  ///< rank 0: where put_newer_aside() moves them
  bool told_slow_ = false;
};

}  // namespace convoy
