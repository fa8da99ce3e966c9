// SPDX-License-Identifier: Apache-2.0
// Times of day and durations as schedulers write them, when this job will be ended, and how long it may stand still.
#pragma once
#include <string>

namespace convoy {

/// Seconds since 1970.
double wall_seconds();
/// `2026-11-28 14:03:07`, local time.
std::string local_time_text(double seconds);

/// `90`, `90s`, `15m`, `2h`, `1d`, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`, `D-HH:MM:SS`, in seconds. Throws
/// std::invalid_argument.
double parse_duration(const std::string& text);
/// Seconds since 1970, or a local time `2026-11-28T14:03:07` (a blank for the T, no seconds: fine). What schedulers say
/// for "none" (NONE, N/A, UNLIMITED, Unknown, an empty text) is 0. Throws std::invalid_argument.
double parse_end_time(const std::string& text);

/// When a process of this host started. It tells the process from an earlier one that had the same id.
struct ProcessStart {
  bool hidden = false;  ///< it exists, but this user may not see its start
  double ticks = 0;     ///< since the host's start, so setting the clock changes nothing; 0: it has ended
  double time = 0;      ///< seconds since 1970, by the host's clock of now
};
ProcessStart process_start(long pid);

/// What the user says of the end of the job.
struct TimeLimit {
  double end_time = 0;         ///< --end-time, seconds since 1970; 0: none
  double limit_seconds = 0;    ///< --time-limit, from the start of the program; 0: none
  double margin_seconds = 15;  ///< --end-margin: be gone so long before
};

/// How long ranks wait for each other.
struct StallLimits {
  double warn_seconds = 60, abort_seconds = 300;  ///< of a wait between ranks; 0: never
  double watchdog_seconds = 300;                  ///< of a main thread that does not move (run/watchdog.hpp); 0: never
};

struct EndOfJob {
  double time = 0;     ///< seconds since 1970; 0: no limit is known
  std::string source;  ///< `--end-time`, `SLURM_JOB_END_TIME` ...
};

/// The earliest of what the user and the scheduler say (SLURM_JOB_END_TIME; PBS_WALLTIME from the start of the job's
/// first process that is an ancestor of this one). A variable that can't be read counts as absent.
EndOfJob end_of_job(const TimeLimit& limit);

}  // namespace convoy
