// SPDX-License-Identifier: Apache-2.0
#include "run/liveness_monitor.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/log.hpp"
#include "core/stop.hpp"

namespace convoy {
namespace {

double shortest_of(const StallLimits& limits) {
  const double warn = limits.warn_seconds, abort = limits.abort_seconds;
  return warn > 0 && abort > 0 ? std::min(warn, abort) : std::max(warn, abort);
}

}  // namespace

LivenessMonitor::LivenessMonitor(LivenessSpec spec, const Progress& progress, Clock& clock)
    : spec_(std::move(spec)),
      ranks_(static_cast<int>(spec_.hosts.size())),
      progress_(progress),
      clock_(clock),
      folder_(spec_.local_folder),
      moved_(clock.now()),
      wait_began_(moved_),
      changed_at_(spec_.hosts.size(), moved_) {
  constexpr double usual_period = 2, longest_period = 15, longest_look_after = 10, looks = 8, seconds_a_node = 0.03;
  const double shortest = shortest_of(spec_.limits);
  const auto nodes = static_cast<double>(std::set<std::string>(spec_.hosts.begin(), spec_.hosts.end()).size());
  period_ = shortest > 0 ? std::clamp(shortest / looks, 0.2, usual_period) : usual_period;
  period_ = std::clamp(nodes * seconds_a_node, period_, longest_period);
  look_after_ = shortest > 0 ? std::min(shortest / looks, longest_look_after) : longest_look_after;
  beat_.rank = spec_.rank;
  beat_.ranks = ranks_;
  beat_.host = spec_.hosts[static_cast<std::size_t>(spec_.rank)];
  beat_.pid = getpid();
  beat_.period = period_;
}

void LivenessMonitor::step() {
  std::string folder;
  {
    const std::lock_guard lock(guard_);
    folder = folder_;
  }
  if (folder != written_folder_) open(folder);
  const Instant now = clock_.now();
  observe(now);
  if (reads_now(now) && seconds_between(looked_, now) >= period_) read(now);
}

void LivenessMonitor::open(const std::string& folder) {
  written_folder_ = folder;
  path_ = heartbeat_path({folder, spec_.start, spec_.node_first, spec_.node_rank});
  created_ = false;
  failures_ = 0;
  written_ = {};
}

void LivenessMonitor::observe(Instant now) {
  const ProgressSnapshot at = progress_.read();
  if (at.marks != marks_) moved_ = now;
  if (at.waits != waits_ || !at.waiting) wait_began_ = now;
  marks_ = at.marks;
  waits_ = at.waits;
  waiting_ = at.waiting;
  const bool news = at.exit != beat_.exit || stop_signal() != beat_.signal;
  if (!news && seconds_between(written_, now) < period_) return;
  beat_.phase = name_of(at.activity);
  beat_.epoch = at.epoch;
  beat_.step = at.step;
  beat_.operation = at.operation.data();
  beat_.waiting = waiting_ ? seconds_between(wait_began_, now) : -1;
  beat_.quiet = seconds_between(moved_, now);
  beat_.signal = stop_signal();
  beat_.exit = at.exit;
  write(now);
}

void LivenessMonitor::write(Instant now) {
  written_ = now;
  ++beat_.count;
  beat_.time = clock_.wall_seconds();
  if (write_heartbeat(path_, spec_.node_rank, beat_, created_ ? IfMissing::leave : IfMissing::create)) {
    created_ = true;
    failures_ = 0;
    return;
  }
  // A new folder may take a moment to show on other hosts.
  constexpr int tolerated = 3;
  if (++failures_ != tolerated || written_folder_ == spec_.local_folder) return;
  if (spec_.rank == 0) {
    log::warn(
        "heartbeats can't be written to '{}'; the run continues, but nobody can see whether ranks of other hosts are alive",
        written_folder_);
  }
  const std::lock_guard lock(guard_);
  if (folder_ == written_folder_) folder_ = spec_.local_folder;
}

/// On a large job not every rank reads every file: the lowest ones do, and all of them before the end.
bool LivenessMonitor::reads_now(Instant now) const {
  constexpr int early_readers = 32;
  if (!waiting_ || ranks_ == 1) return false;
  const double abort_seconds = spec_.limits.abort_seconds;
  const bool early = spec_.rank < early_readers || abort_seconds <= 0;
  return seconds_between(wait_began_, now) >= (early ? look_after_ : 0.75 * abort_seconds);
}

void LivenessMonitor::read(Instant now) {
  const bool first = seconds_between(looked_, now) > 4 * period_ + 1;
  looked_ = now;
  read_heartbeats(written_folder_, spec_.start, found_);
  const Instant read_at = clock_.now();
  const std::lock_guard lock(guard_);
  seen_at_ = read_at;
  ranks_seen_.resize(static_cast<std::size_t>(ranks_));
  for (const Heartbeat& beat : found_) {
    if (beat.rank < 0 || beat.rank >= ranks_) continue;
    const auto rank = static_cast<std::size_t>(beat.rank);
    RankLiveness& seen = ranks_seen_[rank];
    if (first || !seen.known || seen.heartbeat.count != beat.count) changed_at_[rank] = read_at;
    seen = {true, beat, seconds_between(changed_at_[rank], read_at)};
  }
}

StallReport LivenessMonitor::explain() const {
  const std::lock_guard lock(guard_);
  StallReport report;
  if (!ranks_seen_.empty()) report = find_missing(ranks_seen_, spec_.hosts, spec_.rank);
  if (report.missing.empty()) report.speaker = spec_.rank == 0;
  const double age = seconds_between(seen_at_, clock_.now());
  if (!ranks_seen_.empty() && age > 4 * period_ + 2)
    report.missing += fmt::format("; heartbeats could not be read for {:.0f} s", age);
  return report;
}

void LivenessMonitor::write_to(const std::string& folder) {
  {
    const std::lock_guard lock(guard_);
    folder_ = folder;
  }
  remove_local_file();
}

void LivenessMonitor::remove_local_file() const {
  if (spec_.node_rank != 0) return;
  ::unlink(heartbeat_path({spec_.local_folder, spec_.start, spec_.node_first, spec_.node_rank}).c_str());
}

}  // namespace convoy
