// SPDX-License-Identifier: Apache-2.0
// Every start of a run is an attempt with a number of its own, and only the newest may write. A rank that was cut off
// or frozen while its run was started again elsewhere finds a higher number and leaves.
#pragma once
#include <compare>
#include <limits>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// What an attempt says of itself: FOLDER/attempts/NNNN.json.
struct AttemptRecord {
  std::string run;  ///< id of the run; empty while it is being decided
  Index number = 0;
  std::string scheduler, job;  ///< `slurm`, `pbs` or nothing, and its job id
  Index restarts = 0;          ///< times the scheduler had started that job again
  std::string host;            ///< of rank 0
  Index pid = 0;
  double started = 0;            ///< seconds since 1970
  double ticks = 0;              ///< start of the process, as in ProcessStart; 0: not known
  std::string checkpoints = {};  ///< absolute path of the folder where it saves; empty: it saves nothing
  std::string folder = {};       ///< absolute path of the run directory; empty: an older program wrote the record
  // The checkpoint from which it trains; a fresh start has none.
  std::string from = {};  ///< absolute path
  Index from_attempt = -1,
        from_step = -1;  ///< that wrote it (0: not one of this folder), and steps done there; -1: none
};

/// When a checkpoint was saved. The later of two has the higher attempt, or more steps of the same attempt. Steps of
/// two attempts don't compare: an attempt with another batch numbers them otherwise.
struct Stamp {
  Index attempt = 0;  ///< 0: not known, older files don't say
  Index step = 0;     ///< steps done
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a literal 0 in what the compiler makes
  auto operator<=>(const Stamp&) const = default;
};

/// The newest number that is taken in the folders, readable or not.
Index newest_number(const std::vector<std::string>& folders);

/// The newest attempt of the folder, below `before`, that has a readable record; number 0: there is none. Throws
/// Error(data).
AttemptRecord newest_attempt(const std::string& folder, Index before = std::numeric_limits<Index>::max());
/// Did an attempt of the folder belong to that run? Throws Error(data).
bool knows_run(const std::string& folder, const std::string& run);

/// The run directory in which that attempt began, if it still exists and is not `run_folder`. Then `run_folder` is a
/// copy of it, and the attempt's checkpoints belong to the original. Empty: it is no copy, or the record doesn't tell.
std::string original_of(const std::string& run_folder, const AttemptRecord& record);

/// Where a run's attempts may have saved: RUN/checkpoints, then other folders, that of the newest attempt first. Those
/// outside the run directory have the attempt's record, too, and no other run directory has it: a copied one doesn't
/// lead to the checkpoints of the one that it was copied from. Throws Error(data).
std::vector<std::string> checkpoint_folders(const std::string& run_folder);
/// What keeps a copied run directory from its attempts' checkpoints: `it is a copy of 'A', whose checkpoints lie in
/// 'B'`. Empty: it isn't such a copy. Throws Error(data).
std::string tell_original(const std::string& run_folder);

/// Number of attempts that began after `time` (seconds since 1970).
Index attempts_since(const std::string& folder, double time);

/// How an attempt ended: FOLDER/attempts/NNNN.end.json.
bool has_ended(const std::string& folder, Index number);

/// A number for this attempt, higher than any in the folders, and taken in all of them: of several jobs that start at
/// once each gets its own. The record is written with that number. Throws Error(data).
Index claim_attempt(const std::vector<std::string>& folders, AttemptRecord record);
/// The same with the record's own number. False: somebody has it.
bool claim_number(const std::vector<std::string>& folders, const AttemptRecord& record);
/// Replaces the record of the claimed attempt. Throws Error(data).
void rewrite_record(const std::vector<std::string>& folders, const AttemptRecord& record);

/// Which checkpoints of a folder led to where its run stands: an attempt may have gone back to an earlier one, and what
/// came after that is another line.
class Lineage {
 public:
  Lineage() = default;
  /// Of the attempts that began below `before`. Throws Error(data).
  explicit Lineage(const std::string& folder, Index before = std::numeric_limits<Index>::max());
  /// The number of an attempt of this folder; 0 for one that a copied checkpoint brought along.
  Index known(Index attempt) const { return attempt <= newest_ ? attempt : 0; }
  Stamp known(const Stamp& stamp) const { return {known(stamp.attempt), stamp.step}; }
  /// Is a checkpoint of that attempt (0: not known) after so many steps on the line?
  bool holds(Index attempt, Index step) const;
  /// The newest attempt that went on from a checkpoint; number 0: there is none.
  const AttemptRecord& newest() const { return begun_.front(); }

 private:
  Index newest_ = 0;
  std::vector<AttemptRecord> begun_{AttemptRecord{}};  ///< that have a `from`, newest first; at least one
};

/// Guards what one attempt writes. A default one guards nothing.
///
/// A file is written under a temporary name that ends in suffix(), then check() is called, then the file is renamed. A
/// newer attempt takes its number first and then removes such files of older ones. So an older writer, wherever it was
/// frozen, either finds the number, or has renamed before the newer attempt looked at the files, or has nothing left to
/// rename.
class Fence {
 public:
  Fence() = default;
  Fence(std::vector<std::string> folders, Index number);

  Index number() const { return number_; }
  /// Number of the newest attempt, where it is newer than this one; else 0. Never throws: what can't be read is no
  /// reason to leave.
  Index newer() const;
  /// Throws Error(superseded) where there is a newer attempt.
  void check() const;
  /// `.a0003.tmp`, or `.tmp` without a number.
  std::string suffix() const;
  /// Replaces `path` by `temporary`, which ends in suffix(). Throws Error(superseded) or Error(data).
  void rename(const std::string& temporary, const std::string& path) const;
  /// The whole text at once, through a temporary file. Throws Error(superseded) or Error(data); the old text is then
  /// still there.
  void replace(const std::string& path, const std::string& text) const;
  /// Removes what older attempts left half-written in `folder`.
  void remove_older_temporaries(const std::string& folder) const;

 private:
  std::vector<std::string> folders_;
  Index number_ = 0;
};

}  // namespace convoy
