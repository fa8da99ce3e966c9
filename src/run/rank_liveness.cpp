// SPDX-License-Identifier: Apache-2.0
#include "run/rank_liveness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/clock.hpp"
#include "core/stop.hpp"
#include "metrics/console.hpp"
#include "run/scheduler.hpp"

namespace convoy {
namespace {

/// Heartbeats that are this late have stopped: two were missed.
double silence_of(const Heartbeat& beat) { return 2.5 * beat.period + 0.5; }

std::string position_of(const Heartbeat& beat) {
  std::string text = beat.phase;
  if (beat.step > 0) text += fmt::format(", epoch {}, step {}", beat.epoch, beat.step);
  if (!beat.operation.empty()) text += fmt::format(", {}{}", beat.waiting >= 0 ? "waiting for " : "", beat.operation);
  return text;
}

/// Names some and counts the others.
std::string joined(const std::vector<std::string>& texts) {
  constexpr std::size_t most_named = 8;
  const std::size_t named = std::min(texts.size(), most_named);
  const std::string text =
      fmt::format("{}", fmt::join(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(named), "; "));
  return texts.size() > named ? text + fmt::format("; and {} more ranks", texts.size() - named) : text;
}

}  // namespace

Liveness liveness_of(const RankLiveness& seen) {
  if (!seen.known) return Liveness::unknown;
  if (seen.heartbeat.exit >= 0) return Liveness::left;
  return seen.unchanged > silence_of(seen.heartbeat) ? Liveness::silent : Liveness::alive;
}

std::string describe(const RankLiveness& seen, int rank, const std::string& host) {
  const std::string who = fmt::format("rank {} on {}", rank, host);
  const Heartbeat& beat = seen.heartbeat;
  switch (liveness_of(seen)) {
    case Liveness::unknown:
      return fmt::format("{}: no heartbeat is known", who);
    case Liveness::left:
      return fmt::format("{}: left with code {} in {}", who, beat.exit, position_of(beat));
    case Liveness::silent:
      return fmt::format(
          "{}: in {}, its heartbeats stopped {:.0f} s ago (frozen or killed, or its host, network or file system is gone)",
          who, position_of(beat), seen.unchanged);
    case Liveness::alive:
      break;
  }
  if (beat.waiting >= 0) return fmt::format("{}: in {} for {:.0f} s", who, position_of(beat), beat.waiting);
  return fmt::format("{}: alive in {}, no progress for {:.0f} s", who, position_of(beat), beat.quiet);
}

StallReport find_missing(const std::vector<RankLiveness>& seen, const std::vector<std::string>& hosts, int own) {
  StallReport report;
  std::vector<int> missing, waiting, moving;
  bool any_known = false;
  for (int rank = 0; rank < static_cast<int>(seen.size()); ++rank) {
    if (rank == own) continue;
    const RankLiveness& other = seen[static_cast<std::size_t>(rank)];
    const Liveness sign = liveness_of(other);
    const bool waits = sign == Liveness::alive && other.heartbeat.waiting >= 0;
    // It has given up waiting in this moment, and is about to say why; or it is the one that is slow.
    constexpr double a_moment = 1;
    const bool moves = sign == Liveness::alive && !waits && other.heartbeat.quiet + other.unchanged < a_moment;
    any_known |= other.known;
    if ((waits || moves || sign == Liveness::left) && rank < own) report.speaker = false;
    (waits ? waiting : moves ? moving : missing).push_back(rank);
  }
  if (!any_known) return report;
  if (missing.empty()) missing = moving;
  const auto list = [&](const std::vector<int>& ranks) {
    std::vector<std::string> texts;
    for (const int rank : ranks) {
      const auto r = static_cast<std::size_t>(rank);
      texts.push_back(describe(seen[r], rank, hosts[r]));
    }
    return joined(texts);
  };
  report.missing = missing.empty()
                       ? "all ranks are alive and wait, so the network between them may be cut: " + list(waiting)
                       : "did not arrive: " + list(missing);
  return report;
}

namespace {

constexpr double waits_too_long = 60;  // seconds: the default of --stall-warning-seconds

std::vector<Heartbeat> heartbeats_of(const std::string& folder) { return read_heartbeats(folder + "/heartbeats"); }

/// One entry per rank; ranks that never wrote are not known.
std::vector<RankLiveness> all_ranks(const std::vector<Heartbeat>& beats, double now) {
  int ranks = 0;
  for (const Heartbeat& beat : beats) ranks = std::max(ranks, beat.ranks);
  std::vector<RankLiveness> seen(static_cast<std::size_t>(ranks));
  for (const Heartbeat& beat : beats) {
    if (beat.rank >= 0 && beat.rank < ranks) {
      seen[static_cast<std::size_t>(beat.rank)] = {true, beat, std::max(0.0, now - beat.time)};
    }
  }
  return seen;
}

std::string host_of(const RankLiveness& seen) { return seen.known ? seen.heartbeat.host : "a host that is not known"; }

bool is_suspicious(const RankLiveness& seen) {
  return liveness_of(seen) == Liveness::silent || liveness_of(seen) == Liveness::unknown;
}

/// Clocks of hosts may differ: a rank whose count grows while we look is alive.
void look_again(const std::string& folder, std::vector<RankLiveness>& seen) {
  double period = 1;
  for (const RankLiveness& one : seen) period = std::max(period, one.heartbeat.period);
  real_clock().sleep(1.25 * period);
  const auto later = all_ranks(heartbeats_of(folder), real_clock().wall_seconds());
  for (std::size_t rank = 0; rank < std::min(seen.size(), later.size()); ++rank) {
    const bool moved =
        later[rank].known && (!seen[rank].known || later[rank].heartbeat.count != seen[rank].heartbeat.count);
    seen[rank] = later[rank];
    if (moved) seen[rank].unchanged = 0;
  }
}

}  // namespace

std::string silent_ranks(const std::string& folder) {
  const auto beats = heartbeats_of(folder);
  if (beats.empty()) return {};
  auto seen = all_ranks(beats, real_clock().wall_seconds());
  if (std::any_of(seen.begin(), seen.end(), is_suspicious)) look_again(folder, seen);
  std::vector<std::string> texts, hosts;
  bool waiting = false;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    hosts.push_back(host_of(seen[rank]));
    if (is_suspicious(seen[rank])) texts.push_back(describe(seen[rank], static_cast<int>(rank), hosts.back()));
    waiting |= seen[rank].heartbeat.waiting > waits_too_long;
  }
  if (texts.empty() && waiting) return find_missing(seen, hosts, -1).missing;
  return joined(texts);
}

std::string first_dead_ranks(const std::string& folder) {
  const auto beats = heartbeats_of(folder);
  if (beats.empty()) return {};
  double newest = 0;
  for (const Heartbeat& beat : beats) newest = std::max(newest, beat.time);
  std::vector<std::string> texts;
  const auto seen = all_ranks(beats, newest);
  // Launchers kill the survivors, some without a signal that they could note down: whose heartbeats stopped long before
  // the newest one was first.
  const bool some_stopped_early = std::any_of(seen.begin(), seen.end(), is_suspicious);
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    const Heartbeat& beat = seen[rank].heartbeat;
    if (seen[rank].known && (beat.exit >= 0 || beat.signal != 0)) continue;
    if (some_stopped_early && !is_suspicious(seen[rank])) continue;
    const std::string phase = !seen[rank].known ? "it never wrote a heartbeat"
                              : beat.step > 0
                                  ? fmt::format("{}, epoch {}, step {}{}{}", beat.phase, beat.epoch, beat.step,
                                                beat.operation.empty() ? "" : ", ", beat.operation)
                                  : beat.phase;
    texts.push_back(fmt::format("rank {} on {} ({})", rank, host_of(seen[rank]), phase));
  }
  if (texts.empty()) return {};
  return "died first, frozen or cut off: " + joined(texts);
}

std::string last_heartbeats(const std::string& folder) {
  std::vector<std::string> texts;
  const auto seen = all_ranks(heartbeats_of(folder), real_clock().wall_seconds());
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    const Heartbeat& beat = seen[rank].heartbeat;
    if (!seen[rank].known) {
      texts.push_back(fmt::format("rank {}: it never wrote a heartbeat", rank));
      continue;
    }
    const std::string signal =
        beat.signal == 0 ? "" : fmt::format(", told to stop by {}", name_of_stop_signal(beat.signal));
    const std::string exit = beat.exit < 0 ? "" : fmt::format(", left with code {}", beat.exit);
    texts.push_back(fmt::format("rank {} on {}: last heartbeat {} ago in {}{}{}", rank, beat.host,
                                duration_text(seen[rank].unchanged), position_of(beat), signal, exit));
  }
  return joined(texts);
}

std::string lost_hosts(const std::string& folder) {
  std::set<std::string> hosts;
  for (const Heartbeat& beat : heartbeats_of(folder)) hosts.insert(beat.host);
  std::erase_if(hosts, host_answers);
  return fmt::format("{}", fmt::join(hosts, ", "));
}

}  // namespace convoy
