// SPDX-License-Identifier: Apache-2.0
#include "run/excluded_hosts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

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
  const std::vector<ExcludedHost> known = read_excluded_hosts(run_folder);
  std::string text;
  for (const ExcludedHost& own : known) text += fmt::format("{}\t{}\t{}\n", own.host, own.attempt, own.reason);
  // Another reason of the attempt counts too: what follows from it may differ.
  const std::string kind = reason.substr(0, reason.find(','));
  std::set<std::string> added;
  for (const int rank : ranks) {
    const std::string& host = host_of_rank[static_cast<std::size_t>(rank)];
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const ExcludedHost& own) {
      return own.host == host && own.attempt == attempt && own.reason.find(": " + kind) != std::string::npos;
    });
    if (!is_known && added.insert(host).second)
      text += fmt::format("{}\t{}\trank {}: {}\n", host, attempt, rank, reason);
  }
  if (added.empty()) return;
  try {
    replace_text_file(excluded_hosts_path(run_folder), text);
  } catch (const Error& error) {
    log::warn("{}; the job scripts will not leave out {}", error.what(), fmt::join(added, ", "));
  }
}

}  // namespace convoy
