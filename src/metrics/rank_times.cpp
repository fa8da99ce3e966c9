// SPDX-License-Identifier: Apache-2.0
#include "metrics/rank_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace convoy {
namespace {

/// Ranks of one job differ by a few per cent anywhere.
constexpr double even_excess = 0.1;

template <class Value>
Spread spread(const std::vector<RankTimes>& times, Value value) {
  Spread result{.min = value(times.front()), .mean = 0, .max = value(times.front())};
  for (const RankTimes& t : times) {
    result.min = std::min(result.min, value(t));
    result.max = std::max(result.max, value(t));
    result.mean += value(t) / static_cast<double>(times.size());
  }
  return result;
}

double mean_of_others(double mean, double own, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  return ranks > 1 ? std::max(0.0, (mean * n - own) / (n - 1)) : own;
}

}  // namespace

RankSpread spread_of(const std::vector<RankTimes>& times, const std::vector<std::string>& hosts) {
  RankSpread result;
  if (times.empty()) return result;
  result.ranks = static_cast<int>(times.size());
  result.busy = spread(times, [](const RankTimes& t) { return t.busy(); });
  result.data = spread(times, [](const RankTimes& t) { return t.data; });
  result.compute = spread(times, [](const RankTimes& t) { return t.compute; });
  result.comm = spread(times, [](const RankTimes& t) { return t.comm; });
  const Spread other = spread(times, [](const RankTimes& t) { return t.other; });
  result.first_memory = times.front().peak_memory;
  for (const RankTimes& rank : times) result.most_memory = std::max(result.most_memory, rank.peak_memory);
  const auto slowest =
      std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.busy() < b.busy(); });
  result.slowest = static_cast<int>(slowest - times.begin());
  result.host = hosts.at(static_cast<std::size_t>(result.slowest));
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (std::size_t r = 0; r < times.size(); ++r) ranks_of_host[hosts.at(r)].push_back(static_cast<int>(r));
  for (const auto& [host, ranks] : ranks_of_host) {
    HostTime own{host, ranks.front(), 0};
    for (const int r : ranks) own.busy += times[static_cast<std::size_t>(r)].busy() / static_cast<double>(ranks.size());
    result.hosts.push_back(own);
  }
  const double others = mean_of_others(result.busy.mean, slowest->busy(), times.size());
  result.excess = others > 0 ? slowest->busy() / others - 1 : 0;
  struct Part {
    const char* name;
    double own, mean;
  };
  double most = -1;
  for (const Part& part : std::array<Part, 3>{{{"data", slowest->data, result.data.mean},
                                               {"compute", slowest->compute, result.compute.mean},
                                               {"other", slowest->other, other.mean}}}) {
    const double rest = mean_of_others(part.mean, part.own, times.size());
    if (part.own - rest <= most) continue;
    most = part.own - rest;
    result.part = part.name;
    result.part_seconds = part.own;
    result.others_seconds = rest;
  }
  return result;
}

SlowHosts find_slow_hosts(const RankSpread& spread, double factor) {
  SlowHosts slow;
  if (spread.hosts.size() < 3) return slow;
  std::vector<double> busy;
  for (const HostTime& host : spread.hosts) busy.push_back(host.busy);
  std::sort(busy.begin(), busy.end());
  slow.median = busy[(busy.size() - 1) / 2];
  for (const HostTime& host : spread.hosts)
    if (host.busy > factor * slow.median) slow.hosts.push_back(host);
  return slow;
}

std::string describe(const RankSpread& s) {
  const std::string range =
      fmt::format("{} ranks worked {:.2f} to {:.2f} s (mean {:.2f}) and waited {:.2f} to {:.2f} s", s.ranks, s.busy.min,
                  s.busy.max, s.busy.mean, s.comm.min, s.comm.max);
  if (s.excess < even_excess) return range + ": even";
  const std::string by = s.excess < 1 ? fmt::format("{:.0f} % more than the others", 100 * s.excess)
                                      : fmt::format("{:.1f} times the others", 1 + s.excess);
  return fmt::format("{}; slowest: rank {} on {}, {}: {} {:.2f} s (others {:.2f} s)", range, s.slowest, s.host, by,
                     s.part, s.part_seconds, s.others_seconds);
}

}  // namespace convoy
