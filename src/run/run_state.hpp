// SPDX-License-Identifier: Apache-2.0
// RUN_DIR/state.json: where a run stands, for people and scripts on other machines. docs/cluster.md has the fields.
#pragma once
#include <optional>
#include <string>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace convoy {

struct AttemptRecord;

enum class RunStage : std::uint8_t { start, train, evaluate, save, end };
/// running: also what a killed attempt leaves behind; `updated` tells the two apart. limited: an option (--max-steps,
/// --run-epochs) ended the job before the end of the run, as its user wants it. superseded never stands in state.json,
/// which belongs to the newest attempt.
enum class Result : std::uint8_t { running, finished, limited, stopped, failed, superseded };

/// Times are seconds since 1970, 0: never or not known.
struct RunState {
  std::string run;        ///< id of the run: the same for all attempts that continue it
  Index attempt = 0;      ///< counts the starts in this run directory, from 1
  std::string scheduler;  ///< `slurm`, `pbs` or nothing
  std::string job;        ///< of the scheduler
  std::string host;       ///< of rank 0
  Index pid = 0, ranks = 0;

  RunStage stage = RunStage::start;
  Index epoch = 0, epochs = 0;  ///< the running one, from 1; of the whole run
  Index step = 0, steps = 0;    ///< done, of the whole run
  Index start_step = 0;         ///< steps that were done when this attempt began
  Index steps_per_epoch = 0;
  double images_per_second = 0;  ///< of the whole job in the last interval
  double eta_seconds = 0;        ///< to the end of the run, at this speed
  double end_time = 0;           ///< wall-clock limit of this job; 0: none

  /// The newest durable checkpoint to continue from, relative to the run directory where it lies below.
  std::string checkpoint;
  Index checkpoint_step = 0;
  double checkpoint_time = 0, checkpoint_seconds = 0;  ///< when it was in place; from the end of its step to then
  double checkpoint_stall = 0;                         ///< seconds of it for which the steps stood still

  /// Why it was asked to stop: `SIGUSR1`, `SIGINT`, `SIGTERM`, `time limit`, `--max-steps 9`; empty: it was not.
  std::string stop;
  double stop_time = 0;

  double started = 0;     ///< this attempt
  double progressed = 0;  ///< last time the main thread of rank 0 came by
  double updated = 0;     ///< last time this file was written: every few seconds while rank 0 lives

  Result result = Result::running;
  Exit exit = Exit::ok;  ///< meant where result isn't running
  std::string message;   ///< of a failure
  Index rank = -1;       ///< that failed first; -1: none
};

const char* name_of(RunStage stage);
const char* name_of(Result result);
/// What a process that leaves with that code makes of its attempt. `stop`: as RunState has it.
Result result_of(Exit code, const std::string& stop = {});

/// A checkpoint as RunState names it.
std::string path_from(const std::string& run_folder, const std::string& path);

/// When a file was written, seconds since 1970; 0 where it can't be asked.
double time_of_file(const std::string& path);

/// One JSON object, indented.
std::string to_text(const RunState& state);
/// Throws Error(data) naming `path` where text is not such an object.
RunState parse_run_state(const std::string& text, const std::string& path);

/// The state of an attempt that has begun, before any step.
RunState state_of(const AttemptRecord& record);

/// state.json of a run directory together with attempts/NNNN.end.json, where a rank that failed says so itself (rank 0
/// may have been killed before it could). Nothing: no attempt has got that far. Throws Error(data).
std::optional<RunState> read_run_state(const std::string& folder);
/// The same. Where state.json is empty or damaged (a power cut may leave it so), a warning says so, and what the newest
/// attempt and its checkpoints say counts. Throws Error(data) where there is no attempt.
std::optional<RunState> find_run_state(const std::string& folder);
/// Makes it the state of a later attempt that wrote none: it runs, or has ended as attempts/NNNN.end.json says.
void pass_to_attempt(RunState& state, const std::string& folder, Index attempt);

}  // namespace convoy
