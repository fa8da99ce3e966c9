// SPDX-License-Identifier: Apache-2.0
#include "run/dead_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "core/wall_clock.hpp"
#include "run/rank_liveness.hpp"
#include "run/scheduler.hpp"

namespace convoy {
namespace {

constexpr std::size_t most_named = 8;
constexpr double waits_too_long = 60;  // seconds: the default of --stall-warning-seconds

std::vector<Heartbeat> heartbeats_of(const std::string& folder) { return read_heartbeats(folder + "/heartbeats"); }

/// One entry a rank; ranks that never wrote are not known.
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

std::string joined(const std::vector<std::string>& texts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(texts.size(), most_named); ++i) text += (i > 0 ? "; " : "") + texts[i];
  if (texts.size() > most_named) text += fmt::format("; and {} more ranks", texts.size() - most_named);
  return text;
}

bool is_suspicious(const RankLiveness& seen) {
  return liveness_of(seen) == Liveness::silent || liveness_of(seen) == Liveness::unknown;
}

/// Clocks of hosts may differ: a rank whose count grows while we look is alive.
void look_again(const std::string& folder, std::vector<RankLiveness>& seen) {
  double period = 1;
  for (const RankLiveness& one : seen) period = std::max(period, one.heartbeat.period);
  std::this_thread::sleep_for(std::chrono::duration<double>(1.25 * period));
  const auto later = all_ranks(heartbeats_of(folder), wall_seconds());
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
  auto seen = all_ranks(beats, wall_seconds());
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
    const std::string phase = !seen[rank].known ? "it never gave a sign of life"
                              : beat.step > 0
                                  ? fmt::format("{}, epoch {}, step {}{}{}", beat.phase, beat.epoch, beat.step,
                                                beat.operation.empty() ? "" : ", ", beat.operation)
                                  : beat.phase;
    texts.push_back(fmt::format("rank {} on {} ({})", rank, host_of(seen[rank]), phase));
  }
  if (texts.empty()) return {};
  return "died first, frozen or cut off: " + joined(texts);
}

std::string lost_hosts(const std::string& folder) {
  std::set<std::string> hosts;
  for (const Heartbeat& beat : heartbeats_of(folder)) hosts.insert(beat.host);
  std::string lost;
  for (const std::string& host : hosts) {
    if (!host_answers(host)) {
      if (!lost.empty()) lost += ", ";
      lost += host;
    }
  }
  return lost;
}

}  // namespace convoy
