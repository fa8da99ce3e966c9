// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "checkpoint/checkpoint.hpp"
#include "comm/agreed_error.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "core/wall_clock.hpp"
#include "io/file.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

// A living attempt writes its state every 5 s.
constexpr double silent_seconds = 12;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The scheduler has started the other attempt's job again, so it has given that one up, even where it lives on.
bool is_requeued(const AttemptRecord& other, const AttemptRecord& own) {
  const bool same_job = !own.job.empty() && own.job == other.job && own.scheduler == other.scheduler;
  return same_job && (own.restarts > other.restarts || own.host != other.host);
}

/// Seconds since a file was written, by the file system's own clock; negative: it isn't there. A date in the future
/// counts as now.
double age_of(const std::string& path, const std::string& folder) {
  const std::string probe = fmt::format("{}/.clock-{}-{}.tmp", folder, getpid(), wall_seconds());
  std::error_code failed, ignored;
  const auto written = fs::last_write_time(path, failed);
  if (failed) return -1;
  create_text_file(probe, "");
  const auto now = fs::last_write_time(probe, failed);
  fs::remove(probe, ignored);
  return failed ? -1 : std::max(0.0, std::chrono::duration<double>(now - written).count());
}

/// Looks at another attempt again and again.
class Observer {
 public:
  Observer(const std::string& folder, const AttemptRecord& other, const std::string& host, Clock& clock)
      : folder_(folder), other_(other), host_(host), clock_(clock) {
    for (const std::string& sign : {folder + "/state.json", record_path()}) {
      const double age = age_of(sign, folder);
      if (age >= 0) heard_of_ = std::max(heard_of_, later(clock_.now(), -age));
    }
    last_ = updated();
  }

  bool seems_alive() {
    if (has_ended(folder_, other_.number)) return false;
    const Presence there = other_.host == host_ ? presence_of(other_) : Presence::unknown;
    if (there != Presence::unknown) return there == Presence::lives;
    if (const double now = updated(); now != last_) {
      last_ = now;
      heard_of_ = clock_.now();
    }
    return seconds_between(heard_of_, clock_.now()) < silent_seconds;
  }

 private:
  std::string record_path() const { return fmt::format("{}/attempts/{:04}.json", folder_, other_.number); }
  double updated() const {
    try {
      const auto state = read_run_state(folder_);
      return state && state->attempt == other_.number ? state->updated : 0;
    } catch (const Error&) {  // not of this program's: nothing is known
      return 0;
    }
  }

  const std::string folder_;
  const AttemptRecord other_;
  const std::string host_;
  Clock& clock_;
  Instant heard_of_{};
  double last_ = 0;
};

/// A record's file is there a moment before its text; one that stays empty is of a process that was killed.
AttemptRecord newest_written(const std::string& folder, Clock& clock) {
  constexpr double moment = 2;
  for (const Instant begin = clock.now();; clock.sleep(0.1)) {
    AttemptRecord other = newest_attempt(folder);
    if (other.number == newest_number({folder}) || seconds_between(begin, clock.now()) > moment) return other;
  }
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  std::error_code failed;
  const auto relative = fs::relative(path, folder, failed);
  return !failed && !relative.empty() && *relative.begin() != "..";
}

bool has_finished(const std::string& folder, Index attempt) {
  try {
    const auto state = read_run_state(folder);
    return state && state->attempt == attempt && state->result == Result::finished;
  } catch (const Error&) {  // not of this program's: nothing is known
    return false;
  }
}

/// The warning if this run directory is a copy and saves in its original's folder: the run continues and replaces the
/// original's checkpoints. Empty: it is no such copy.
std::string warning_of_copy(const Attempt& attempt) {
  const std::string& folder = attempt.folders.front();
  const AttemptRecord before = newest_attempt(folder, attempt.record.number);
  std::error_code unknown;
  if (before.checkpoints.empty() || !fs::equivalent(before.checkpoints, attempt.record.checkpoints, unknown)) return {};
  const std::string original = original_of(folder, before);
  if (original.empty()) return {};
  return fmt::format(
      "'{}' is a copy of '{}', and both save in '{}': this run replaces the original's checkpoints; give another "
      "--checkpoint-dir if both are to go on",
      folder, original, attempt.record.checkpoints);
}

std::string new_run_id() {
  std::random_device source;
  std::string text = local_time_text(real_clock().wall_seconds());
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  text[8] = 'T';
  return fmt::format("{}-{:08x}", text, source());
}

}  // namespace

Presence presence_of(const AttemptRecord& attempt) {
  const ProcessStart start = process_start(attempt.pid);
  if (start.hidden) return Presence::unknown;
  constexpr double slack = 2;  // of an older record, which has no ticks
  const bool same = attempt.ticks > 0 ? start.ticks == attempt.ticks : start.time < attempt.started + slack;
  return start.ticks > 0 && same ? Presence::lives : Presence::gone;
}

Index require_alone(const std::string& folder, const AttemptRecord& own, double wait_seconds, Clock& clock) {
  const AttemptRecord other = newest_written(folder, clock);
  if (other.number == 0 || is_requeued(other, own)) return 0;
  const std::string who =
      fmt::format("attempt {} ({}host {}, pid {})", other.number,
                  other.job.empty() ? "" : other.scheduler + " job " + other.job + ", ", other.host, other.pid);
  Observer observer(folder, other, own.host, clock);
  bool told = false, was_alive = false;
  for (const Instant begin = clock.now(); observer.seems_alive();) {
    leave_if_stopped("waiting for another job to end");
    was_alive = true;
    const double waited = seconds_between(begin, clock.now());
    if (waited > wait_seconds) {
      fail(
          Exit::usage,
          "'{}' is in use by {}, which is alive; wait for it or end it, choose another --output-dir, or give --take-over",
          folder, who);
    }
    if (!told && waited > 1)
      log::info("{} seems to be alive in '{}': waiting up to {:.0f} s for its end", who, folder, wait_seconds);
    told = told || waited > 1;
    clock.sleep(0.1);
  }
  return was_alive ? other.number : 0;
}

Claim claim_alone(const std::vector<std::string>& folders, AttemptRecord own, double wait_seconds, Clock& clock) {
  Claim claim;
  for (const Instant begin = clock.now();;) {
    own.number = newest_number(folders) + 1;  // known before anybody is looked at: who comes between has it
    for (const std::string& folder : folders) {
      const Index seen = require_alone(folder, own, wait_seconds - seconds_between(begin, clock.now()), clock);
      if (seen > 0 && folder == folders.front()) claim.waited_for = seen;
    }
    if (!claim_number(folders, own)) continue;
    claim.number = own.number;
    return claim;
  }
}

AttemptRecord own_job() {
  AttemptRecord record{.job = variable("SLURM_JOB_ID")};
  record.scheduler = record.job.empty() ? "" : "slurm";
  if (record.job.empty()) {
    record.job = variable("PBS_JOBID");
    record.scheduler = record.job.empty() ? "" : "pbs";
  }
  record.restarts = std::strtoll(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10);
  return record;
}

void begin_attempt(Communicator& communicator, const AttemptSpec& spec, Attempt& to) {
  const bool saves = !spec.checkpoint_folder.empty();
  to.folders = {spec.run_folder};
  if (saves && !lies_below(spec.checkpoint_folder, spec.run_folder)) to.folders.push_back(spec.checkpoint_folder);
  to.record = own_job();
  std::error_code unknown;
  if (saves) to.record.checkpoints = fs::absolute(spec.checkpoint_folder, unknown).lexically_normal().string();
  to.record.folder = fs::absolute(spec.run_folder, unknown).lexically_normal().string();
  to.record.host = communicator.host();
  to.record.pid = getpid();
  to.record.started = real_clock().wall_seconds();
  to.record.ticks = process_start(to.record.pid).ticks;
  to.hosts = names_of_hosts(communicator);
  run_agreed(communicator, "beginning an attempt", [&] {
    if (communicator.rank() != 0) return;
    const Claim claim = spec.take_over ? Claim{.number = claim_attempt(to.folders, to.record)}
                                       : claim_alone(to.folders, to.record, spec.wait_seconds, real_clock());
    to.record.number = claim.number;
    if (claim.waited_for > 0 && has_finished(spec.run_folder, claim.waited_for)) to.waited_for = claim.waited_for;
    to.fence = Fence(to.folders, to.record.number);
    for (const std::string& folder : to.folders) to.fence.remove_older_temporaries(folder);
    if (saves) remove_leftovers(spec.checkpoint_folder, to.fence);
    to.fence.remove_older_temporaries(spec.run_folder + "/attempts");
    if (const std::string text = warning_of_copy(to); !text.empty()) log::warn("{}", text);
    if (const std::string text = warning_of_excluded(spec.run_folder, to.hosts); !text.empty()) log::warn("{}", text);
  });
  std::array<Index, 2> numbers{to.record.number, to.waited_for};
  communicator.broadcast(std::as_writable_bytes(std::span(numbers)), 0, "number of the attempt");
  to.record.number = numbers[0];
  to.waited_for = numbers[1];
  to.fence = Fence(to.folders, to.record.number);
}

void settle_run(Communicator& communicator, Attempt& attempt, std::string run) {
  run_agreed(communicator, "settling the run", [&] {
    if (communicator.rank() != 0) return;
    if (run.empty()) run = new_run_id();
    attempt.record.run = run;
    rewrite_record(attempt.folders, attempt.record);
  });
  communicator.broadcast(run, "id of the run");
  attempt.record.run = run;
}

void record_begin(Attempt& attempt, const std::string& path, Index by_attempt, Index step) {
  std::error_code failed;
  attempt.record.from = fs::absolute(path, failed).lexically_normal().string();
  const bool own = std::any_of(attempt.folders.begin(), attempt.folders.end(),
                               [&](const std::string& folder) { return lies_below(path, folder); });
  // A checkpoint that was copied here has the number of an attempt of its own run.
  attempt.record.from_attempt = own && by_attempt < attempt.record.number ? by_attempt : 0;
  attempt.record.from_step = step;
  rewrite_record(attempt.folders, attempt.record);
}

void forget_begin(Attempt& attempt) {
  attempt.record.from.clear();
  rewrite_record(attempt.folders, attempt.record);
}

void record_end(const Attempt& attempt, const AttemptEnd& how) {
  if (attempt.record.number == 0) return;
  const bool failed = how.result == Result::failed;
  const Json end = Json::object({{"result", name_of(how.result)},
                                 {"exit", static_cast<int>(how.code)},
                                 {"message", failed ? how.message : std::string()},
                                 {"rank", failed ? how.rank : -1},
                                 {"host", how.host},
                                 {"time", real_clock().wall_seconds()}});
  try {
    create_text_file(fmt::format("{}/attempts/{:04}.end.json", attempt.folders.front(), attempt.record.number),
                     end.text(1, Json::Order::sorted) + "\n");
  } catch (const std::exception& e) {
    log::warn("{}: how this attempt ended is not recorded", e.what());
  }
}

}  // namespace convoy
