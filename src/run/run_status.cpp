// SPDX-License-Identifier: Apache-2.0
#include "run/run_status.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "metrics/console.hpp"

namespace convoy {
namespace {

constexpr double stale_seconds = 30;  // rank 0 writes every 5 s while it lives
constexpr int submit_again = static_cast<int>(Exit::stopped);

constexpr std::array statuses{"running", "hanging", "lost", "stopped", "finished", "failed"};

/// Which exit code follows.
enum class Code : std::uint8_t {
  ok,
  usage,
  communication,
  superseded,
  again,
  again_if_it_saves,  ///< `again`, unless too many attempts in a row brought no new checkpoint
  of_state,           ///< the program's own
  of_launcher
};

struct Row {
  RunEnd end;
  RunStatus status;
  Code code;
  const char* seen;   ///< how `convoy status` says it
  const char* after;  ///< how it stands in the log of the job
};

constexpr auto no_text = "";
constexpr std::array table{
    Row{RunEnd::running, RunStatus::running, Code::ok, "running, last update {updated}", no_text},
    Row{RunEnd::stopping, RunStatus::running, Code::ok, "running and asked to stop ({stop}), last update {updated}",
        no_text},
    Row{RunEnd::hanging, RunStatus::hanging, Code::communication, "hanging: rank 0 last made progress {progressed}",
        no_text},
    Row{RunEnd::lost, RunStatus::lost, Code::again,
        "ended without a record of its end{known}, last update {updated}; submit it again to continue", no_text},
    Row{RunEnd::queued, RunStatus::lost, Code::again,
        "ended without a record of its end{known}, last update {updated}; its job waits in the queue to continue",
        no_text},

    Row{RunEnd::finished, RunStatus::finished, Code::ok, "finished", "finished: {step} of {steps} steps"},
    Row{RunEnd::limited, RunStatus::stopped, Code::ok,
        "stopped by {stop} at step {step} of {steps}; continue with --resume auto",
        "stopped by {stop} at step {step} of {steps}, as asked for, so it isn't submitted again"},
    Row{RunEnd::stopped, RunStatus::stopped, Code::again, "stopped on request ({stop}); submit it again to continue",
        "stopped on request ({stop}) at step {step} of {steps}; it continues"},
    Row{RunEnd::stopped_before_a_step, RunStatus::stopped, Code::usage, no_text,
        "not one step was made in the time of this job ({step} of {steps} steps are done), so it isn't submitted again; ask for more time"},
    Row{RunEnd::stopped_before_steps_again, RunStatus::stopped, Code::usage, no_text,
        "not one step was made in the time of {lost_attempts} jobs ({step} of {steps} steps are done), so it isn't submitted again; ask for more time"},
    Row{RunEnd::failed, RunStatus::failed, Code::of_state, "failed with code {exit}, first on rank {rank}: {message}",
        "rank {rank} failed with code {exit}: {message}{silent}"},
    Row{RunEnd::miscalculated, RunStatus::failed, Code::again_if_it_saves, no_text,
        "{message}; the next job leaves out {excluded}"},
    Row{RunEnd::superseded, RunStatus::failed, Code::superseded, no_text, "a newer attempt continues this run"},
    Row{RunEnd::goes_on_elsewhere, RunStatus::failed, Code::superseded, no_text,
        "attempt {newer} continues this run elsewhere"},

    Row{RunEnd::failed_as_a_host_was_lost, RunStatus::failed, Code::again_if_it_saves, no_text,
        "rank {rank} failed with code {exit}: {message}; no answer from {lost_hosts}{silent}"},
    Row{RunEnd::failed_as_the_launcher_was_killed, RunStatus::failed, Code::again_if_it_saves, no_text,
        "rank {rank} failed with code {exit}: {message}; the launcher ended with {code}{silent}"},
    Row{RunEnd::killed, RunStatus::lost, Code::again_if_it_saves, no_text,
        "killed at epoch {epoch}, step {step}, phase {phase} (the launcher ended with {code}){silent}"},
    Row{RunEnd::ended_silently, RunStatus::lost, Code::ok, no_text, "the program ended without a record of its end"},
    Row{RunEnd::launcher_failed, RunStatus::lost, Code::of_launcher, no_text,
        "the launcher ended with {code} at epoch {epoch}, step {step}, phase {phase}{silent}"},

    Row{RunEnd::launch_failed, RunStatus::failed, Code::of_launcher, no_text,
        "the launcher ended with {code} before the program began: see its messages above"},
    Row{RunEnd::launch_killed, RunStatus::lost, Code::again, no_text,
        "the launcher ended with {code} before the program began; it is started again"},
    Row{RunEnd::launch_killed_again, RunStatus::failed, Code::of_launcher, no_text,
        "the launcher ended with {code} before the program began, {failed_launches} times in a row: see its messages above"},
    Row{RunEnd::program_failed, RunStatus::failed, Code::of_launcher, no_text,
        "the program ended with {code} before it had a run directory"},
    Row{RunEnd::program_killed, RunStatus::lost, Code::again, no_text,
        "killed ({code}) before it had a run directory; it is started again"},
    Row{RunEnd::program_killed_again, RunStatus::failed, Code::of_launcher, no_text,
        "killed ({code}) before it had a run directory, {starts} times in a row: not submitted again"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].end != static_cast<RunEnd>(i)) return false;
  }
  return table.back().end == RunEnd::program_killed_again;
}
static_assert(is_in_order(), "one row for each end");

/// What follows an end with Code::again_if_it_saves.
constexpr auto goes_on = "; it continues ({checkpoint})";
constexpr auto gives_up =
    "; {lost_attempts} attempts in a row brought no new checkpoint, so it isn't submitted again: see its log, and save more often (--save-every-minutes)";

constexpr int daemon_lost = 254;  ///< of mpirun, which also ends so if it could not start a daemon

/// Codes of mpirun, srun and the shell for ranks that were killed (128 + signal; by SIGUSR1 before they could take it:
/// 138), a host that was lost (205; 254 if its daemon's connection closed first), or an mpirun that was told
/// to end (1).
bool is_death_by_others(int code) {
  constexpr std::array codes{1, 129, 130, 137, 138, 143, 205, daemon_lost};
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

/// Whether it is one of those codes, and none with which mpirun also reports that it could not start.
bool is_surely_death_by_others(int code) { return code != 1 && code != daemon_lost && is_death_by_others(code); }

std::string ago(double then, double now) { return duration_text(std::max(0.0, now - then)) + " ago"; }

std::string checkpoint_text(const RunState& state) {
  if (state.checkpoint.empty()) return "no checkpoint yet";
  if (state.steps == 0) return fmt::format("its newest checkpoint has {} steps", state.checkpoint_step);
  return fmt::format("its newest checkpoint has {} of {} steps", state.checkpoint_step, state.steps);
}

/// What can be said of an attempt that ended without a word; empty: nothing.
std::string known_of_end(const RunState& state, const RunObservations& seen) {
  std::vector<std::string> known;
  if (!state.stop.empty()) known.push_back(fmt::format("it had been asked to stop ({})", state.stop));
  if (seen.launcher_code > 128)  // as shells and launchers report a death
    known.push_back(
        fmt::format("its launcher ended with code {} (128 + signal {})", seen.launcher_code, seen.launcher_code - 128));
  else if (seen.launcher_code >= 0)
    known.push_back(fmt::format("its launcher ended with code {}", seen.launcher_code));
  if (seen.job == RunObservations::Job::gone)
    known.push_back(fmt::format("the scheduler no longer has job {}", state.job));
  else if (seen.process == Presence::gone)
    known.push_back(fmt::format("process {} of rank 0 is gone", state.pid));
  return known.empty() ? "" : fmt::format(" ({})", fmt::join(known, "; "));
}

std::string fill(const char* text, const RunState& state, const RunObservations& seen, int code, Index newer) {
  return fmt::format(
      fmt::runtime(text), fmt::arg("updated", ago(state.updated, seen.now)),
      fmt::arg("known", known_of_end(state, seen)), fmt::arg("progressed", ago(state.progressed, seen.now)),
      fmt::arg("stop", state.stop), fmt::arg("epoch", state.epoch), fmt::arg("step", state.step),
      fmt::arg("steps", state.steps), fmt::arg("phase", name_of(state.stage)),
      fmt::arg("exit", static_cast<int>(state.exit)), fmt::arg("rank", state.rank), fmt::arg("message", state.message),
      fmt::arg("checkpoint", checkpoint_text(state)), fmt::arg("silent", seen.silent.empty() ? "" : "; " + seen.silent),
      fmt::arg("lost_hosts", seen.lost_hosts), fmt::arg("excluded", seen.excluded),
      fmt::arg("lost_attempts", seen.lost_attempts), fmt::arg("failed_launches", seen.failed_launches),
      fmt::arg("starts", seen.restarts + 1), fmt::arg("code", code), fmt::arg("newer", newer));
}

int exit_for(const Row& row, const RunState& state, bool saves, int code) {
  switch (row.code) {
    case Code::ok:
      return static_cast<int>(Exit::ok);
    case Code::usage:
      return static_cast<int>(Exit::usage);
    case Code::communication:
      return static_cast<int>(Exit::communication);
    case Code::superseded:
      return static_cast<int>(Exit::superseded);
    case Code::again:
      return submit_again;
    case Code::again_if_it_saves:
      if (saves) return submit_again;
      return code == 0 || code == submit_again ? static_cast<int>(Exit::internal) : code;
    case Code::of_state:
      return static_cast<int>(state.exit);
    case Code::of_launcher:
      break;
  }
  return code;
}

RunEnd end_without_attempt(const RunObservations& seen, int code) {
  if (!is_surely_death_by_others(code)) return RunEnd::launch_failed;
  return seen.failed_launches >= most_lost_attempts ? RunEnd::launch_killed_again : RunEnd::launch_killed;
}

RunEnd end_without_state(const RunObservations& seen, int code) {
  if (!is_surely_death_by_others(code)) return RunEnd::program_failed;
  return seen.restarts >= most_lost_attempts ? RunEnd::program_killed_again : RunEnd::program_killed;
}

RunEnd end_of_stopped(const RunState& state, const RunObservations& seen) {
  // A signal that comes before the first step again and again is one that the scheduler sends ahead of the end.
  if (state.step != state.start_step) return RunEnd::stopped;
  if (seen.lost_attempts >= most_lost_attempts) return RunEnd::stopped_before_steps_again;
  return state.stop == "time limit" ? RunEnd::stopped_before_a_step : RunEnd::stopped;
}

RunEnd end_of_failed(const RunState& state, const RunObservations& seen, int code) {
  if (state.exit == Exit::arithmetic && !seen.excluded.empty()) return RunEnd::miscalculated;
  // Broken communication is mostly what survivors see of somebody else's end.
  if (state.exit != Exit::communication) return RunEnd::failed;
  if (!seen.lost_hosts.empty()) return RunEnd::failed_as_a_host_was_lost;
  return is_surely_death_by_others(code) || code == daemon_lost ? RunEnd::failed_as_the_launcher_was_killed
                                                                : RunEnd::failed;
}

}  // namespace

const char* name_of(RunStatus status) { return statuses[static_cast<std::size_t>(status)]; }

bool is_stale(const RunState& state, double now) { return std::abs(now - state.updated) > stale_seconds; }

RunEnd end_seen(const RunState& state, const RunObservations& seen) {
  using Job = RunObservations::Job;
  switch (state.result) {
    case Result::finished:
      return RunEnd::finished;
    case Result::limited:
      return RunEnd::limited;
    case Result::stopped:
      return RunEnd::stopped;
    case Result::failed:
    case Result::superseded:
      return RunEnd::failed;
    case Result::running:
      break;
  }
  if (seen.job == Job::waits) return RunEnd::queued;
  if (seen.process == Presence::gone || seen.job == Job::gone) return RunEnd::lost;
  // A job that runs and says nothing: rank 0 is stuck, or was killed a moment ago.
  if (is_stale(state, seen.now))
    return seen.job == Job::runs || seen.process == Presence::lives ? RunEnd::hanging : RunEnd::lost;
  if (!seen.silent.empty()) return RunEnd::hanging;
  return state.stop.empty() ? RunEnd::running : RunEnd::stopping;
}

RunEnd end_after_launch(const RunState* state, const RunObservations& seen, int code) {
  if (seen.failed_launches > 0) return end_without_attempt(seen, code);
  if (state == nullptr) return end_without_state(seen, code);
  switch (state->result) {
    case Result::finished:
      return RunEnd::finished;
    case Result::limited:
      return RunEnd::limited;
    case Result::superseded:
      return RunEnd::superseded;
    case Result::stopped:
      return end_of_stopped(*state, seen);
    case Result::failed:
      return end_of_failed(*state, seen, code);
    case Result::running:
      break;
  }
  if (code == static_cast<int>(Exit::superseded)) return RunEnd::superseded;
  if (code == 0) return RunEnd::ended_silently;
  return code == submit_again || is_death_by_others(code) ? RunEnd::killed : RunEnd::launcher_failed;
}

RequeueDecision decide(const RunState& state, const RunObservations& seen) {
  const Row& row = table[static_cast<std::size_t>(end_seen(state, seen))];
  return {row.status, exit_for(row, state, true, 0), fill(row.seen, state, seen, 0, 0)};
}

RequeueDecision decide_requeue(const RunState* state, const RunObservations& seen, int code, Index newer) {
  const RunEnd end = newer > 0 ? RunEnd::goes_on_elsewhere : end_after_launch(state, seen, code);
  const Row& row = table[static_cast<std::size_t>(end)];
  const RunState known = state != nullptr ? *state : RunState{};
  const bool saves = seen.lost_attempts < most_lost_attempts;
  std::string text = row.after;
  if (row.code == Code::again_if_it_saves) text += saves ? goes_on : gives_up;
  return {row.status, exit_for(row, known, saves, code), fill(text.c_str(), known, seen, code, newer)};
}

int exit_without_run(int code, const JobFacts& job) {
  // 1 is what mpirun returns when it is told to end.
  return is_surely_death_by_others(code) || (job.told_to_end > 0 && code == 1) ? submit_again : code;
}

double notice_of(const std::string& scheduler) { return scheduler == "pbs" ? 2 : 60; }

SubmissionDecision decide_submission(const JobFacts& job) {
  constexpr double margin = 60;  // a program that watches the time stops so long ahead of the end at most
  if (job.keeps_nothing && job.end > 0 && job.now >= job.end - margin)
    return {
        false,
        "did not finish in the time of this job and would not finish in the next one: submit it with a longer time limit"};
  if (job.told_to_end > 0 && job.end == 0)
    return {
        false,
        "was told to end, and whether its time was up is not known (no time limit was found): does not submit itself again; submit it by hand to continue"};
  if (job.told_to_end > 0 && job.told_to_end < job.end - job.notice)
    return {false, "was told to end before its time was up: does not submit itself again"};
  const Index in_vain = job.keeps_nothing ? job.resubmitted + 1 : job.jobs_in_vain;
  if (in_vain >= most_lost_attempts) {
    return {false, fmt::format("{} jobs in a row {}, so it isn't submitted again: see its log, and ask for more time{}",
                               in_vain, job.keeps_nothing ? "did not finish" : "made no progress",
                               job.keeps_nothing ? "" : " or make more and smaller partitions (--partitions)")};
  }
  if (job.resubmitted >= job.resubmissions) {
    return {
        false,
        fmt::format(
            "submitted itself {} times, the limit (resubmissions in scripts/site.sh): submit it by hand to continue",
            job.resubmitted)};
  }
  return {true, fmt::format("submits itself again: {} of at most {}", job.resubmitted + 1, job.resubmissions)};
}

}  // namespace convoy
