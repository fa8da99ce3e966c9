// SPDX-License-Identifier: Apache-2.0
// Who is missing, by their heartbeats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "run/heartbeats.hpp"

namespace convoy {

/// What one rank knows of another: its newest heartbeat, and for how long that has not changed, by the own clock, so
/// that clocks of hosts need not agree.
struct RankLiveness {
  bool known = false;
  Heartbeat heartbeat;
  double unchanged = 0;
};

/// alive: its heartbeats come. silent: they have stopped (SIGSTOP, killed, host or network gone). left: it said why it
/// leaves. unknown: it never wrote one.
enum class Liveness : std::uint8_t { alive, silent, left, unknown };
Liveness liveness_of(const RankLiveness& seen);

/// `rank 1 on n1: in forward/backward, step 6, its heartbeats stopped 12 s ago (frozen or killed, or its host is
/// gone)`.
std::string describe(const RankLiveness& seen, int rank, const std::string& host);

/// Which ranks the others wait for, as rank `own` sees it, which waits. `seen` has one entry per rank. A lower rank
/// that is known to wait as well, or that has said why it left, is the speaker instead of this one.
StallReport find_missing(const std::vector<RankLiveness>& seen, const std::vector<std::string>& hosts, int own);

// Judged from outside, by the heartbeats that the ranks of a run left:

/// Ranks that have stopped or keep the others waiting; empty: none. If one seems to have stopped, this looks again
/// some seconds later.
std::string silent_ranks(const std::string& run_folder);
/// The same after the end of an attempt: ranks that neither left nor were told to end, so died first or were cut off.
std::string first_dead_ranks(const std::string& run_folder);
/// The last heartbeat of each rank of an attempt that is gone: how long ago, where it was, the signal that it had got,
/// the code with which it left. Empty: none left heartbeats.
std::string last_heartbeats(const std::string& run_folder);
/// Hosts of the newest attempt's ranks that do not answer, comma-separated.
std::string lost_hosts(const std::string& run_folder);

}  // namespace convoy
