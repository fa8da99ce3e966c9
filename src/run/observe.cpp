// SPDX-License-Identifier: Apache-2.0
#include "run/observe.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "checkpoint/fence.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "io/file.hpp"
#include "run/attempt.hpp"
#include "run/excluded_hosts.hpp"
#include "run/rank_liveness.hpp"
#include "run/scheduler.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

/// Looks only if rank 0 runs on this host.
Presence look_for_process(const std::string& folder, const RunState& state) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string_view full = name.data();
  if (state.host != full.substr(0, full.find('.')) || state.pid <= 0) return Presence::unknown;
  const AttemptRecord attempt = newest_attempt(folder, state.attempt + 1);
  const bool same = attempt.number == state.attempt && attempt.pid == state.pid;  // else its record is damaged
  return presence_of(same ? attempt : AttemptRecord{.pid = state.pid, .started = state.started});
}

RunObservations count_attempts(const std::string& folder, const RunState& state) {
  return {.now = real_clock().wall_seconds(),
          .lost_attempts = attempts_since(folder, state.checkpoint_time),
          .restarts = own_restarts()};
}

/// Has another job than the one whose launcher has just ended, or the same one started again elsewhere, gone on with
/// the run?
bool goes_on_elsewhere(const AttemptRecord& newest, Index attempts_before) {
  if (attempts_before < 0 || newest.number <= attempts_before) return false;
  const AttemptRecord own = own_job();
  if (own.job.empty()) return newest.number > attempts_before + 1;
  return newest.job != own.job || newest.scheduler != own.scheduler || newest.restarts != own.restarts;
}

enum class Count : std::uint8_t { ends, begins, goes_on };

/// Adds one to the number in a file, which `begins` at one and is removed where it `ends`. Returns the sum.
Index count_up(const fs::path& path, Count how) {
  std::error_code none;
  if (how == Count::ends) {
    fs::remove(path, none);
    return 0;
  }
  Index count = 0;
  if (how == Count::goes_on) std::ifstream(path) >> count;
  try {
    replace_text_file(path.string(), fmt::format("{}\n", count + 1));
  } catch (const Error& e) {
    log::warn("{}. Launches that fail cannot be counted, so this one is taken for the last", e.what());
    return most_lost_attempts;
  }
  return count + 1;
}

/// Counts this launch if it began no attempt. Returns the count.
Index count_failed_launches(const std::string& folder, Index attempts_before, Index newest) {
  const bool began = attempts_before < 0 || newest > attempts_before;
  return count_up(fs::path(folder) / "attempts/failed-launches", began ? Count::ends : Count::goes_on);
}

/// The code with which the launcher of an attempt ended, which only its job script knows.
fs::path launcher_file(const std::string& folder, Index attempt) {
  return fs::path(folder) / fmt::format("attempts/{:04}.launcher", attempt);
}

void note_launcher_code(const std::string& folder, Index attempt, int code) {
  try {
    replace_text_file(launcher_file(folder, attempt).string(), fmt::format("{}\n", code));
  } catch (const Error& e) {
    log::warn("{}; 'convoy status' will not know the launcher's code", e.what());
  }
}

int noted_launcher_code(const std::string& folder, Index attempt) {
  int code = -1;
  std::ifstream file(launcher_file(folder, attempt));
  return file >> code ? code : -1;
}

}  // namespace

RunObservations observe(const std::string& run_folder, const RunState& state) {
  RunObservations seen = count_attempts(run_folder, state);
  if (state.result != Result::running) return seen;
  seen.process = look_for_process(run_folder, state);
  seen.job = ask_scheduler(state.scheduler, state.job);
  seen.launcher_code = noted_launcher_code(run_folder, state.attempt);
  return seen;
}

RunObservations observe_closely(const std::string& run_folder, RunState& state) {
  RunObservations seen = observe(run_folder, state);
  if (state.result == Result::running) {
    seen.silent = silent_ranks(run_folder);
    const bool gone = seen.process == Presence::gone || seen.job == RunObservations::Job::gone;
    if (is_stale(state, seen.now) && !gone) {
      // Clocks of hosts differ: a file that seems old is alive if it changes within its longest period.
      constexpr double longest_period = 6;
      real_clock().sleep(longest_period);
      const auto again = read_run_state(run_folder);
      if (again && again->updated != state.updated) {
        state = *again;
        seen.now = again->updated;
      }
    }
  }
  const RunEnd end = end_seen(state, seen);
  if (end == RunEnd::hanging || (end == RunEnd::failed && state.exit == Exit::communication))
    seen.lost_hosts = lost_hosts(run_folder);
  return seen;
}

RequeueDecision decide_after_launch(const std::string& run_folder, int code, Index attempts_before) {
  auto state = find_run_state(run_folder);
  const AttemptRecord newest = newest_attempt(run_folder);
  RunObservations seen{.restarts = own_restarts()};
  if (state) {
    seen = count_attempts(run_folder, *state);
    seen.failed_launches = count_failed_launches(run_folder, attempts_before, newest.number);
    // It was killed between its first two files, or failed before it began: the state is of the attempt before.
    if (newest.number > state->attempt) pass_to_attempt(*state, run_folder, newest.number);
    if (state->result == Result::running && seen.failed_launches == 0)
      note_launcher_code(run_folder, state->attempt, code);
    seen.silent = first_dead_ranks(run_folder);
    std::vector<std::string> excluded;
    for (const ExcludedHost& own : read_excluded_hosts(run_folder))
      if (own.attempt == state->attempt && own.reason.find("arithmetic") != std::string::npos)
        excluded.push_back(own.host);
    seen.excluded = fmt::format("{}", fmt::join(excluded, ", "));
    // A rank that froze has a host that answers; one that was switched off or cut off has not.
    if (state->exit == Exit::communication || code == static_cast<int>(Exit::communication))
      seen.lost_hosts = lost_hosts(run_folder);
  }
  const Index newer = goes_on_elsewhere(newest, attempts_before) ? newest.number : 0;
  return decide_requeue(state ? &*state : nullptr, seen, code, newer);
}

Index count_jobs_in_vain(const std::string& folder, Index made) {
  std::error_code none;
  if (folder.empty()) return 0;
  if (!fs::is_directory(folder, none)) return own_restarts() + 1;
  const fs::path path = fs::path(folder) / ".jobs-without-a-partition";
  return count_up(path, made > 0 ? Count::ends : own_restarts() == 0 ? Count::begins : Count::goes_on);
}

}  // namespace convoy
