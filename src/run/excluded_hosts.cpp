// SPDX-License-Identifier: Apache-2.0
#include "run/excluded_hosts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "core/log.hpp"

namespace convoy {

std::string excluded_hosts_path(const std::string& run_folder) { return run_folder + "/excluded-hosts"; }

std::vector<ExcludedHost> read_excluded_hosts(const std::string& run_folder) {
  std::vector<ExcludedHost> hosts;
  std::ifstream file(excluded_hosts_path(run_folder));
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find('\t');
    const auto second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (line.empty()) continue;
    // A line that somebody added by hand may be a name alone.
    ExcludedHost own{.host = line.substr(0, first), .attempt = 0, .reason = {}};
    if (second != std::string::npos) {
      own.attempt = std::strtoll(line.c_str() + first + 1, nullptr, 10);
      own.reason = line.substr(second + 1);
    }
    hosts.push_back(std::move(own));
  }
  return hosts;
}

void exclude_hosts(const std::string& run_folder, Index attempt, const std::vector<std::string>& host_of_rank,
                   std::span<const int> ranks, const std::string& reason) {
  std::vector<ExcludedHost> known = read_excluded_hosts(run_folder);
  std::ofstream file(excluded_hosts_path(run_folder), std::ios::app);
  for (const int rank : ranks) {
    const std::string& host = host_of_rank[static_cast<std::size_t>(rank)];
    const auto same = [&](const ExcludedHost& own) { return own.host == host && own.attempt == attempt; };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    known.push_back({host, attempt, reason});
    file << fmt::format("{}\t{}\trank {}: {}\n", host, attempt, rank, reason);
  }
  file.flush();
  if (!file)
    log::warn("'{}' can't be written: the job scripts will not leave the host out", excluded_hosts_path(run_folder));
}

}  // namespace convoy
