// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for, and why.
#pragma once
#include <string>
#include <vector>

namespace convoy {

/// Seconds of one rank in an epoch's steps. `comm` is what it waited for others; the rest is its own work.
struct RankTimes {
  double data = 0, compute = 0, comm = 0, other = 0;
  double peak_memory = 0;  ///< bytes, of the process so far
  double busy() const { return data + compute + other; }
};

struct Spread {
  double min = 0, mean = 0, max = 0;
};

/// The work of one host's ranks, the mean over them.
struct HostTime {
  std::string host;
  int first_rank = 0;
  double busy = 0;
};

/// Of all ranks in an epoch. The slowest is the one with most work of its own: in steps that end together it is the one
/// that waits least.
struct RankSpread {
  int ranks = 1;
  Spread busy, data, compute, comm;
  int slowest = 0;
  std::string host;                          ///< of the slowest
  std::string part;                          ///< where it is above the others' mean by most: `data`, `compute`, `other`
  double excess = 0;                         ///< its work by the others' mean, less 1
  double first_memory = 0, most_memory = 0;  ///< peak memory of rank 0, and the largest of all
  std::vector<HostTime> hosts;
  double part_seconds = 0, others_seconds = 0;  ///< its time in that part, and the mean of the others
};

RankSpread spread_of(const std::vector<RankTimes>& times, const std::vector<std::string>& hosts);

struct SlowHosts {
  double median = 0;  ///< seconds of work, of all hosts
  std::vector<HostTime> hosts;
};
/// Hosts whose ranks need more than `factor` times the median of the hosts; fewer than three have no median that says
/// which is slow.
SlowHosts find_slow_hosts(const RankSpread& spread, double factor);

/// One line; says `even` where the slowest is less than a tenth above the others.
std::string describe(const RankSpread& spread);

}  // namespace convoy
