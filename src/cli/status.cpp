// SPDX-License-Identifier: Apache-2.0
#include "cli/status.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "checkpoint/fence.hpp"
#include "cli/command.hpp"
#include "config/parse.hpp"
#include "core/log.hpp"
#include "core/standard_output.hpp"
#include "core/wall_clock.hpp"
#include "io/text_file.hpp"
#include "run/attempt.hpp"
#include "run/dead_ranks.hpp"
#include "run/scheduler.hpp"

namespace convoy {
namespace {

namespace fs = std::filesystem;

/// Looks only where rank 0 runs on this host.
RunObservations::Process look_for_process(const RunState& state) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string_view full = name.data();
  if (state.host != full.substr(0, full.find('.')) || state.pid <= 0) return RunObservations::Process::unknown;
  if (kill(static_cast<pid_t>(state.pid), 0) != 0 && errno == ESRCH) return RunObservations::Process::gone;
  std::ifstream file(fmt::format("/proc/{}/stat", state.pid));
  std::string stat;
  if (!std::getline(file, stat)) return RunObservations::Process::unknown;
  // `4711 (convoy) S ...`; a zombie (Z) has ended, and waits for somebody to ask how.
  const auto begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string::npos || end + 2 >= stat.size()) return RunObservations::Process::unknown;
  const char now = stat[end + 2];
  const bool lives = stat.substr(begin + 1, end - begin - 1) == "convoy" && now != 'Z' && now != 'X';
  return lives ? RunObservations::Process::lives : RunObservations::Process::gone;
}

/// Clocks of hosts differ: a file that seems old is alive if it changes within its longest period.
void look_again(const std::string& folder, RunState& state, RunObservations& signs) {
  constexpr auto longest_period = std::chrono::seconds(6);
  std::this_thread::sleep_for(longest_period);
  const auto again = read_run_state(folder);
  if (!again || again->updated == state.updated) return;
  state = *again;
  signs.now = again->updated;
}

/// Visits attempts/NNNN.json: number and what it holds.
void visit_attempts(const std::string& folder, const std::function<void(Index, const nlohmann::json&)>& visit) {
  std::error_code none;
  for (fs::directory_iterator entry(folder + "/attempts", none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().stem().string();
    if (entry->path().extension() != ".json" || name.find_first_not_of("0123456789") != std::string::npos) continue;
    constexpr std::size_t most_digits = 9;  // as of attempts that are counted on
    if (name.size() > most_digits) continue;
    std::ifstream file(entry->path());
    const auto attempt = nlohmann::json::parse(file, nullptr, false);
    if (attempt.is_object()) visit(std::stoll(name), attempt);
  }
}

Index attempts_since(const std::string& folder, double time) {
  Index count = 0;
  visit_attempts(folder, [&](Index, const auto& attempt) { count += attempt.value("started", 0.0) > time ? 1 : 0; });
  return count;
}

/// Has another job than the one whose launcher has just ended, or the same one started again elsewhere, gone on with
/// the run?
bool goes_on_elsewhere(const AttemptRecord& newest, Index attempts_before) {
  if (attempts_before < 0 || newest.number <= attempts_before) return false;
  const AttemptRecord own = own_job();
  if (own.job.empty()) return newest.number > attempts_before + 1;
  return newest.job != own.job || newest.scheduler != own.scheduler || newest.restarts != own.restarts;
}

RunObservations signs_after(const std::string& folder, const RunState& state) {
  RunObservations signs;
  signs.now = wall_seconds();
  signs.lost_attempts = attempts_since(folder, state.checkpoint_time);
  signs.restarts = own_restarts();
  return signs;
}

/// Counts launches in a row that began no attempt, in a file of the run directory. Returns the count.
Index count_failed_launches(const StatusConfig& config, Index attempt) {
  const fs::path path = fs::path(config.folder) / "attempts/failed-launches";
  std::error_code none;
  if (config.attempts_before < 0 || attempt > config.attempts_before) {
    fs::remove(path, none);
    return 0;
  }
  Index count = 0;
  std::ifstream(path) >> count;
  try {
    replace_text_file(path.string(), fmt::format("{}\n", count + 1));
  } catch (const Error& e) {
    log::warn("{}. Launches that fail cannot be counted, so this one is taken for the last", e.what());
    return most_lost_attempts;
  }
  return count + 1;
}

/// For job scripts: the launcher has ended, so nothing of this attempt is alive.
Exit say_what_next(const StatusConfig& config) {
  auto state = read_run_state(config.folder);
  RunObservations signs;
  signs.restarts = own_restarts();
  const AttemptRecord newest = newest_attempt(config.folder);
  if (state) {
    signs = signs_after(config.folder, *state);
    signs.failed_launches = count_failed_launches(config, newest.number);
    if (newest.number >
        state->attempt) {  // killed between its first two files: the state is that of the attempt before
      state->attempt = newest.number;
      state->result = Result::running;
      state->phase = RunStage::start;
    }
    signs.silent = first_dead_ranks(config.folder);
    // A rank that froze has a host that answers; one that was switched off or cut off has not.
    if (state->exit == Exit::communication || config.after == static_cast<int>(Exit::communication)) {
      signs.lost_hosts = lost_hosts(config.folder);
    }
  }
  RequeueDecision next = decide_requeue(state ? &*state : nullptr, signs, config.after);
  if (goes_on_elsewhere(newest, config.attempts_before)) {
    next = {static_cast<int>(Exit::superseded),
            fmt::format("attempt {} goes on with this run elsewhere", newest.number)};
  }
  // The code is the answer, also where nobody can read the text.
  std::fputs(fmt::format("{}: {}\n", config.folder, next.text).c_str(), stdout);
  return static_cast<Exit>(next.exit);
}

}  // namespace

RunObservations signs_of(const std::string& folder, const RunState& state) {
  RunObservations signs = signs_after(folder, state);
  if (state.result == Result::running) {
    signs.process = look_for_process(state);
    signs.job = ask_scheduler(state.scheduler, state.job);
  }
  return signs;
}

Exit status_command(const Words& words) {
  const StatusConfig config = parse_status(words);
  if (config.after >= 0) return say_what_next(config);
  const auto state = read_run_state(config.folder);
  if (!state) {
    fail(Exit::usage,
         "'{}' has no state.json (no run has begun there, or this is another folder); give a run directory",
         config.folder);
  }
  RunReport report{.folder = config.folder, .state = *state, .signs = signs_of(config.folder, *state)};
  if (report.state.result == Result::running) {
    report.signs.silent = silent_ranks(config.folder);
    const bool gone =
        report.signs.process == RunObservations::Process::gone || report.signs.job == RunObservations::Job::gone;
    if (is_stale(report.state, report.signs.now) && !gone) look_again(config.folder, report.state, report.signs);
  }
  const RunStatus life = status_of(report.state, report.signs);
  if (life == RunStatus::hanging || (life == RunStatus::failed && report.state.exit == Exit::communication)) {
    report.signs.lost_hosts = lost_hosts(config.folder);
  }
  write_output(config.json ? status_json(report) : status_text(report));
  return exit_of(life, report.state);
}

}  // namespace convoy
