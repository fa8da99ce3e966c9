// SPDX-License-Identifier: Apache-2.0
#include "run/rank_liveness.hpp"

#include <fmt/format.h>

#include <algorithm>

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
          "{}: in {}, its heartbeats stopped {:.0f} s ago (frozen or killed, or its host, network or "
          "file system is gone)",
          who, position_of(beat), seen.unchanged);
    case Liveness::alive:
      break;
  }
  if (beat.waiting >= 0) return fmt::format("{}: in {} for {:.0f} s", who, position_of(beat), beat.waiting);
  return fmt::format("{}: alive in {}, no progress for {:.0f} s", who, position_of(beat), beat.quiet);
}

StallReport find_missing(const std::vector<RankLiveness>& seen, const std::vector<std::string>& hosts, int own) {
  constexpr std::size_t most_named = 8;
  StallReport roll;
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
    if ((waits || moves || sign == Liveness::left) && rank < own) roll.speaker = false;
    (waits ? waiting : moves ? moving : missing).push_back(rank);
  }
  if (!any_known) return roll;
  if (missing.empty()) missing = moving;
  const auto list = [&](const std::vector<int>& ranks) {
    std::string text;
    const std::size_t named = std::min(ranks.size(), most_named);
    for (std::size_t i = 0; i < named; ++i) {
      const auto rank = static_cast<std::size_t>(ranks[i]);
      text += fmt::format("{}{}", i > 0 ? "; " : "", describe(seen[rank], ranks[i], hosts[rank]));
    }
    return ranks.size() > named ? text + fmt::format("; and {} more ranks", ranks.size() - named) : text;
  };
  roll.missing = missing.empty()
                     ? "all ranks are alive and wait, so the network between them may be cut: " + list(waiting)
                     : "did not arrive: " + list(missing);
  return roll;
}

}  // namespace convoy
