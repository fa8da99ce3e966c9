// SPDX-License-Identifier: Apache-2.0
#include "run/run_status.hpp"

#include <algorithm>
#include <array>

namespace convoy {
namespace {

constexpr double stale_seconds = 30;  // rank 0 writes every 5 s while it lives
constexpr int submit_again = static_cast<int>(Exit::stopped);

constexpr std::array lives{"running", "hanging", "lost", "stopped", "finished", "failed"};

/// Codes of mpirun, srun and the shell for ranks that were killed (128 + signal; by SIGUSR1 before they could take it:
/// 138), a host that was lost (205), or an mpirun that was told to end (1).
bool is_death_by_others(int code) {
  constexpr std::array codes{1, 129, 130, 137, 138, 143, 205};
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::string checkpoint_text(const RunState& state) {
  if (state.checkpoint.empty()) return "no checkpoint yet";
  if (state.steps == 0) return fmt::format("its newest checkpoint has {} steps", state.checkpoint_step);
  return fmt::format("its newest checkpoint has {} of {} steps", state.checkpoint_step, state.steps);
}

std::string silent_text(const RunObservations& signs) { return signs.silent.empty() ? "" : "; " + signs.silent; }

RequeueDecision go_on(const RunState& state, const RunObservations& signs, const std::string& why, int code) {
  if (signs.lost_attempts >= most_lost_attempts) {
    return {
        code == 0 || code == submit_again ? static_cast<int>(Exit::internal) : code,
        fmt::format("{}{}; {} attempts in a row brought no new checkpoint, so it isn't submitted again: see its log, "
                    "and save more often (--save-every-minutes)",
                    why, silent_text(signs), signs.lost_attempts)};
  }
  return {submit_again, fmt::format("{}{}; it goes on ({})", why, silent_text(signs), checkpoint_text(state))};
}

RequeueDecision after_failure(const RunState& state, const RunObservations& signs, int code) {
  const std::string said =
      fmt::format("rank {} failed with code {}: {}", state.rank, static_cast<int>(state.exit), state.message);
  if (state.exit == Exit::communication) {  // mostly what survivors see of somebody else's end
    if (!signs.lost_hosts.empty())
      return go_on(state, signs, fmt::format("{}; no answer from {}", said, signs.lost_hosts), code);
    if (code != 1 && is_death_by_others(code)) {
      return go_on(state, signs, fmt::format("{}; the launcher ended with {}", said, code), code);
    }
  }
  return {static_cast<int>(state.exit), said + silent_text(signs)};
}

RequeueDecision after_stop(const RunState& state, const RunObservations& signs) {
  // A signal that comes before the first step again and again is one that the scheduler sends ahead of the end.
  const bool again = signs.lost_attempts >= most_lost_attempts;
  if (state.step == state.start_step && (state.stop == "time limit" || again)) {
    return {
        static_cast<int>(Exit::usage),
        fmt::format("not one step was made in the time of {} ({} of {} steps are done), so it isn't submitted again; "
                    "ask for more time",
                    again ? fmt::format("{} jobs", signs.lost_attempts) : "this job", state.step, state.steps)};
  }
  return {submit_again,
          fmt::format("stopped on request ({}) at step {} of {}; it goes on", state.stop, state.step, state.steps)};
}

}  // namespace

const char* name_of(RunStatus life) { return lives[static_cast<std::size_t>(life)]; }

bool is_stale(const RunState& state, double now) { return now - state.updated > stale_seconds; }

RunStatus status_of(const RunState& state, const RunObservations& signs) {
  switch (state.result) {
    case Result::finished:
      return RunStatus::finished;
    case Result::stopped:
      return RunStatus::stopped;
    case Result::failed:
    case Result::superseded:
      return RunStatus::failed;
    case Result::running:
      break;
  }
  if (signs.process == RunObservations::Process::gone) return RunStatus::lost;
  if (signs.job == RunObservations::Job::gone || signs.job == RunObservations::Job::waits) return RunStatus::lost;
  const bool stale = is_stale(state, signs.now);
  // A job that runs and says nothing: rank 0 is stuck, or was killed a moment ago.
  if (stale)
    return signs.job == RunObservations::Job::runs || signs.process == RunObservations::Process::lives
               ? RunStatus::hanging
               : RunStatus::lost;
  return signs.silent.empty() ? RunStatus::running : RunStatus::hanging;
}

Exit exit_of(RunStatus life, const RunState& state) {
  switch (life) {
    case RunStatus::running:
    case RunStatus::finished:
      return Exit::ok;
    case RunStatus::hanging:
      return Exit::communication;
    case RunStatus::lost:
    case RunStatus::stopped:
      return Exit::stopped;
    case RunStatus::failed:
      break;
  }
  return state.exit;
}

RequeueDecision decide_requeue(const RunState* state, const RunObservations& signs, int code) {
  if (signs.failed_launches > 0) {
    const std::string what = fmt::format("the launcher ended with {} before the program began", code);
    // 1 is what mpirun says of its own troubles.
    if (!is_death_by_others(code) || code == 1) return {code, what + ": see what it said above"};
    if (signs.failed_launches >= most_lost_attempts) {
      return {code, fmt::format("{}, {} times in a row: see what it said above", what, signs.failed_launches)};
    }
    return {submit_again, what + "; it is started again"};
  }
  if (state == nullptr) {
    if (code == 0 || !is_death_by_others(code) || code == 1) {
      return {code, fmt::format("the program ended with {} before it had a run directory", code)};
    }
    if (signs.restarts >= most_lost_attempts) {
      return {code, fmt::format("killed ({}) before it had a run directory, {} times in a row: not submitted again",
                                code, signs.restarts + 1)};
    }
    return {submit_again, fmt::format("killed ({}) before it had a run directory: it starts again", code)};
  }
  switch (state->result) {
    case Result::finished:
      return {0, fmt::format("finished: {} of {} steps", state->step, state->steps)};
    case Result::superseded:
      return {static_cast<int>(Exit::superseded), "a newer attempt goes on with this run"};
    case Result::stopped:
      return after_stop(*state, signs);
    case Result::failed:
      return after_failure(*state, signs, code);
    case Result::running:
      break;
  }
  if (code == static_cast<int>(Exit::superseded)) return {code, "a newer attempt goes on with this run"};
  if (code == 0) return {0, "the program ended without saying how"};
  if (code == submit_again || is_death_by_others(code)) {
    return go_on(*state, signs,
                 fmt::format("killed at epoch {}, step {}, phase {} (the launcher ended with {})", state->epoch,
                             state->step, name_of(state->phase), code),
                 code);
  }
  return {code, fmt::format("the launcher ended with {} at epoch {}, step {}, phase {}{}", code, state->epoch,
                            state->step, name_of(state->phase), silent_text(signs))};
}

}  // namespace convoy
