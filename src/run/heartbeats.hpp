// SPDX-License-Identifier: Apache-2.0
// Heartbeats of a job's ranks: RUN_DIR/heartbeats, one file per host and in it one line per rank, overwritten in place
// (docs/cluster.md is the schema). Nothing here throws, takes a lock or allocates while it writes: a run does not
// depend on its heartbeats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct Heartbeat {
  int rank = 0, ranks = 1;
  std::string host;
  Index pid = 0;
  Index count = 0;            ///< of this rank's heartbeats; a living rank's grows
  double time = 0;            ///< when it was written, seconds since 1970 by the clock of its host
  double period = 0;          ///< seconds between two of them
  std::string phase;          ///< name_of(Activity)
  Index epoch = 0, step = 0;  ///< worked on, from 1; 0: none yet
  std::string operation;      ///< what it waits for or does; empty: the phase says it
  double waiting = -1;        ///< seconds that it has waited for other ranks or the device; < 0: it does not wait
  double quiet = 0;           ///< seconds since the main thread last moved
  int signal = 0;             ///< that asked it to stop; 0: none
  int exit = -1;              ///< the code it left with; < 0: it has not left
};

/// Where one rank writes: a place in the file of its host.
struct HeartbeatPlace {
  std::string folder;
  std::string start;   ///< names this start of the run; later ones sort behind
  int first_rank = 0;  ///< the lowest rank of the host: the file's name
  int slot = 0;        ///< this rank's line
};

std::string heartbeat_path(const HeartbeatPlace& place);

/// False where it can't be written. `create`: makes a missing file; else a file that is gone stays gone, since a newer
/// start of the run removed it.
enum class IfMissing : bool { leave, create };
bool write_heartbeat(const std::string& path, int slot, const Heartbeat& heartbeat, IfMissing if_missing);

/// Of the newest start found in `folder` (RUN_DIR/heartbeats), by rank. Ranks that never wrote are missing.
std::vector<Heartbeat> read_heartbeats(const std::string& folder);

/// The same of one start, into memory that is kept.
void read_heartbeats(const std::string& folder, const std::string& start, std::vector<Heartbeat>& to);

/// Removes what other starts left.
void remove_old_heartbeats(const std::string& folder, const std::string& start);

}  // namespace convoy
