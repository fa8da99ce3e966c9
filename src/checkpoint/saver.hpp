// SPDX-License-Identifier: Apache-2.0
// Saves checkpoints beside the steps: a thread of each rank writes, only the main threads talk to each other.
//
// A save has two parts. First every rank writes the shards of its own replicas (none where the replicas are alike).
// When all ranks are through with that, rank 0 hears their seals, writes the main file, which names them, and puts it
// in place: so a checkpoint that can be seen has all its shards. Files of one attempt and of one name are written once,
// so an older checkpoint of that name stays whole until the new main file replaces it.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/file.hpp"
#include "checkpoint/writer.hpp"
#include "comm/communicator.hpp"

namespace convoy {

/// What is to be saved: copies that nobody changes until the result is there.
struct SaveSpec {
  std::string name;  ///< `last`, `epoch-0003`
  CheckpointMeta meta;
  std::shared_ptr<const HostSet> averaged;  ///< rank 0; null elsewhere
  std::shared_ptr<const HostSet> ema;       ///< likewise; null where meta has no ema_decay
  std::shared_ptr<const HostSet> outer;     ///< likewise; null where meta has no outer optimiser
  std::shared_ptr<const HostSet> bases;     ///< likewise; null where meta has no compression
  std::vector<Shard> shards;                ///< of this rank's replicas
  bool with_shards = false;                 ///< alike on all ranks
  double begun = 0;                         ///< end of the step that it holds, seconds since 1970
};

struct SaveResult {
  SaveSpec spec;         ///< its memory can be used again
  Exit code = Exit::ok;  ///< agreed. Else: what was there before is as it was, and the ranks that failed have said why
  double seconds = 0;    ///< from the end of the step to a verified file under its name; rank 0
};

class Saver {
 public:
  struct Place {
    std::string folder;
    int keep = 1 << 30;  ///< numbered checkpoints that stay
    const Plan& plan;
    const SetLayout& layout;
    Fence fence = {};
    double timeout_seconds = 300;  ///< of finish() for one part, besides the time that its bytes take; 0: no limit
    Clock& clock = real_clock();
  };
  Saver(Communicator& communicator, Place place);

  /// Rank 0, before the first save: files of the folder that are moved aside as soon as a checkpoint is written and
  /// only its renaming is left. A first `best` moves its own name's alone: nobody resumes from it.
  void put_aside_first(std::vector<std::string> files) { abandoned_ = std::move(files); }
  /// Collective. Returns at once.
  void begin(SaveSpec spec);
  bool idle() const { return saves_.empty(); }
  /// For the agreement of every step: parts that this rank's writer is through with.
  Index finished_parts() const { return writer_.finished(); }
  /// Collective. `agreed`: the fewest finished parts of any rank. Returns at once where they let nothing go on.
  void advance(Index agreed);
  /// Collective. Waits until all saves have their results.
  void finish();
  /// In order of begin(); nothing: none is there.
  std::optional<SaveResult> take_result();

 private:
  struct Save {
    SaveSpec spec;
    std::atomic<double> in_place{0};
    Index part = 0;  ///< the one that is under way
    bool main_begun = false;
    std::vector<ShardRecord> own;  ///< of the writer, then of the main thread
  };
  void write_shards(Save& save) const;
  void write_main(Save& save, std::vector<ShardRecord> shards);
  void make_way(const std::string& name);
  /// Collective.
  void begin_main(Save& save);
  /// Collective.
  Exit outcome(const Save& save);
  void conclude(Exit code);
  double bytes_of(const Save& save) const;

  Communicator& communicator_;
  const Place place_;
  std::deque<std::unique_ptr<Save>> saves_;
  std::deque<SaveResult> results_;
  std::vector<std::string> abandoned_;  ///< of the writer from the first save on
  std::string aside_;
  Writer writer_;  ///< last: its thread uses the others
};

}  // namespace convoy
