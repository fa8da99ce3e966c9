// SPDX-License-Identifier: Apache-2.0
// Who is missing, by their heartbeats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "metrics/heartbeats.hpp"

namespace convoy {

/// What one rank knows of another: its newest heartbeat, and for how long that has not changed, by the own clock, so
/// that clocks of hosts need not agree.
struct Seen {
  bool known = false;
  Heartbeat heartbeat;
  double unchanged = 0;
};

/// alive: its heartbeats come. silent: they have stopped (SIGSTOP, killed, host or network gone). left: it said why it
/// leaves. unknown: it never wrote one.
enum class LifeSign : std::uint8_t { alive, silent, left, unknown };
LifeSign sign_of(const Seen& seen);

/// `rank 1 on n1: in forward/backward, step 6, its heartbeats stopped 12 s ago (frozen or killed, or its host is
/// gone)`.
std::string describe(const Seen& seen, int rank, const std::string& host);

struct RollCall {
  /// The ranks that do not wait, so that the others wait for them; empty: nothing is known of any rank but this one.
  std::string missing;
  /// False where a lower rank is known to wait as well, which speaks for the job, or to have left, which has spoken.
  bool speaker = true;
};
/// As rank `own` sees it, which waits. `seen` has one entry a rank.
RollCall call_roll(const std::vector<Seen>& seen, const std::vector<std::string>& hosts, int own);

}  // namespace convoy
