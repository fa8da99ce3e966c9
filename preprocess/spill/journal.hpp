// SPDX-License-Identifier: Apache-2.0
// What a preparation leaves behind so that it can go on, or be known to be done: runs in the spill folder while it
// lasts, `preparation.json` in the output folder at the end.
#pragma once
#include <string>
#include <vector>

#include "preprocess/images/survey.hpp"
#include "preprocess/prepare_spec.hpp"
#include "preprocess/spill/job_identity.hpp"
#include "preprocess/spill/run_file.hpp"
#include "preprocess/spill/spiller.hpp"

namespace convoy::preparation {

/// What decides the bytes of runs: another text means another preparation.
std::string recipe_text(const PrepareSpec& spec);
/// What decides beyond that the bytes of partitions.
std::string layout_text(const PrepareSpec& spec);

/// What a run asks of what earlier ones left.
struct SpillRequest {
  JobIdentity identity;
  bool overwrite = false;
  Times times = Times::compare;
};

/// Returns whether the folder holds intermediate files of this preparation.
bool is_spill_of(const std::string& folder, const SpillRequest& request);
/// Makes or finds the spill folder; leaves what is there only if this preparation left it, and, with `overwrite`, if
/// it was begun with `overwrite`, too. Throws Error(usage) where another's is in the way and `overwrite` is off.
void prepare_spill(const std::string& folder, const SpillRequest& request);
/// Removes partitions that a preparation begun with `overwrite` replaces: once, so that those that it has written
/// stay when it goes on. Throws Error(data).
void remove_replaced(const std::string& folder, const std::vector<std::string>& partitions);
/// Names of whole-looking runs, sorted; what a killed writer left is removed.
std::vector<std::string> list_runs(const std::string& folder);
void remove_spill(const std::string& folder);

/// The runs that hold together: each shard's from its beginning on, without gap. A damaged one and those that went on
/// after it are removed, with a warning: what they held is read again.
std::vector<std::string> keep_sound_runs(const std::string& folder, std::size_t shards);

/// What is still to be read of each shard: nothing (left = 0), all, or from a position on.
std::vector<PendingShard> find_pending(const std::vector<Shard>& shards, const std::vector<RunReader>& runs);

/// `preparation.json`: what was made of what.
struct Preparation {
  JobIdentity identity;
  std::string layout, source_digest;
  std::vector<std::string> files;  ///< partitions, relative to the folder
  Index images_read = 0;
  FindingCounts findings{};
};
void write_preparation(const std::string& folder, const Preparation& preparation);
/// Nothing is taken for done any more.
void remove_preparation(const std::string& folder);
/// False where there is none that can be read.
bool read_preparation(const std::string& folder, Preparation& preparation);

}  // namespace convoy::preparation
