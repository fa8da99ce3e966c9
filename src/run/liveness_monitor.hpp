// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/clock.hpp"
#include "core/progress.hpp"
#include "run/heartbeats.hpp"
#include "run/rank_liveness.hpp"

namespace convoy {

/// What a rank's monitor must know of the job.
struct LivenessSpec {
  int rank = 0;
  std::vector<std::string> hosts;  ///< one per rank
  int node_first = 0;              ///< the lowest rank of this host
  int node_rank = 0;               ///< this rank's place among those of its host
  std::string start;               ///< names this start of the program, the same on all ranks
  std::string local_folder;        ///< in the memory of this host
  StallLimits limits;
};

/// Writes the heartbeats of this rank and reads those of the others while this rank waits for them. Heartbeats go to
/// the local folder, so that ranks of one host know of each other, until write_to() names a folder that all hosts see.
class LivenessMonitor {
 public:
  LivenessMonitor(LivenessSpec spec, const Progress& progress, Clock& clock);

  /// Writes and reads what is due. It touches files, and so may hang.
  void step();
  void write_to(const std::string& folder);
  /// Which ranks do not arrive. Never waits for a file.
  StallReport explain() const;
  /// Removes what only ranks of this host could read.
  void remove_local_file() const;

 private:
  void open(const std::string& folder);
  void observe(Instant now);
  void write(Instant now);
  void read(Instant now);
  bool reads_now(Instant now) const;

  const LivenessSpec spec_;
  const int ranks_;
  const Progress& progress_;
  Clock& clock_;
  double period_, look_after_;

  mutable std::mutex guard_;  ///< of these; never held during a call to the file system
  std::string folder_;
  std::vector<RankLiveness> ranks_seen_;
  Instant seen_at_;

  // The rest belongs to the thread that calls step().
  Heartbeat beat_;
  std::string written_folder_, path_;
  bool created_ = false, waiting_ = false;
  int failures_ = 0;
  std::uint64_t marks_ = 0, waits_ = 0;
  Instant moved_, wait_began_, written_{}, looked_{};
  std::vector<Heartbeat> found_;
  std::vector<Instant> changed_at_;
};

}  // namespace convoy
