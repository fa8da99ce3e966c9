// SPDX-License-Identifier: Apache-2.0
#include "run/excluded_hosts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "core/descriptor.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "io/file.hpp"

namespace convoy {

std::string excluded_hosts_path(const std::string& run_folder) { return run_folder + "/excluded-hosts"; }

namespace {

/// `n1` of `n1.cluster.local`; an address is a name as a whole.
std::string name_without_domain(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace

HostNames match_nodes(std::vector<std::string> hosts, const std::vector<std::string>& nodes) {
  HostNames names{.own = std::move(hosts), .of_scheduler = nodes};
  std::map<std::string, std::set<std::string>> hosts_of_node;
  for (std::size_t r = 0; r < nodes.size(); ++r) hosts_of_node[nodes[r]].insert(names.own[r]);
  for (std::size_t r = 0; r < nodes.size(); ++r)
    if (nodes[r].empty() || hosts_of_node[nodes[r]].size() > 1) names.of_scheduler[r] = names.own[r];
  return names;
}

std::string node_of(const std::string& host) {
  const char* const node = std::getenv("SLURMD_NODENAME");
  if (node == nullptr) return {};
  // srun sets it for each task. In a batch script, which has a SLURM_PROCID too, it is that of the script's own host.
  // Hydra (MPICH, Intel MPI) starts its proxies by srun, and hands the variables of mpiexec's host on to their ranks.
  const bool by_srun = std::getenv("SLURM_STEP_NUM_TASKS") != nullptr && std::getenv("MPI_LOCALNRANKS") == nullptr;
  return by_srun || name_without_domain(node) == name_without_domain(host) ? node : "";
}

HostNames names_of_hosts(Communicator& communicator) {
  return match_nodes(communicator.hosts(),
                     communicator.all_gather(node_of(communicator.host()), "names of the scheduler's nodes"));
}

std::vector<ExcludedHost> read_excluded_hosts(const std::string& run_folder) {
  constexpr const char* blanks = " \t\r";
  std::vector<ExcludedHost> hosts;
  if (is_pipe(excluded_hosts_path(run_folder))) return hosts;
  std::ifstream file(excluded_hosts_path(run_folder));
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const auto first = line.find('\t');
    const auto second = first == std::string::npos ? first : line.find('\t', first + 1);
    // A line that somebody added by hand may be a name alone, or a comment.
    const auto begin = line.find_first_not_of(blanks);
    if (begin == std::string::npos || line[begin] == '#') continue;
    ExcludedHost own{.host = line.substr(begin, line.find_first_of(blanks, begin) - begin), .attempt = 0, .reason = {}};
    if (second != std::string::npos) {
      own.attempt = std::strtoll(line.c_str() + first + 1, nullptr, 10);
      own.reason = line.substr(second + 1);
    }
    hosts.push_back(std::move(own));
  }
  return hosts;
}

std::vector<ExcludedHost> excluded_among(const std::string& run_folder, const HostNames& hosts) {
  std::set<std::string> own;
  for (const auto* names : {&hosts.own, &hosts.of_scheduler})
    for (const std::string& name : *names) own.insert(name_without_domain(name));
  std::vector<ExcludedHost> found;
  for (ExcludedHost& one : read_excluded_hosts(run_folder)) {
    const std::string name = name_without_domain(one.host);
    if (!own.contains(name)) continue;
    std::erase_if(found, [&](const ExcludedHost& earlier) { return name_without_domain(earlier.host) == name; });
    found.push_back(std::move(one));
  }
  return found;
}

std::string describe(const std::vector<ExcludedHost>& hosts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const ExcludedHost& own = hosts[i];
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == hosts.size() ? " and " : ", ", own.host);
    if (!own.reason.empty()) text += fmt::format(" (attempt {}, {})", own.attempt, own.reason);
  }
  return text;
}

std::string warning_of_excluded(const std::string& run_folder, const HostNames& hosts) {
  const std::vector<ExcludedHost> found = excluded_among(run_folder, hosts);
  if (found.empty()) return {};
  std::vector<std::string> names;
  for (const ExcludedHost& own : found) {
    const std::string name = name_without_domain(own.host);
    for (std::size_t r = 0; r < hosts.own.size(); ++r) {
      const std::string& node = hosts.of_scheduler[r];
      const bool is_it = name_without_domain(hosts.own[r]) == name || name_without_domain(node) == name;
      if (is_it && std::find(names.begin(), names.end(), node) == names.end()) names.push_back(node);
    }
  }
  return fmt::format(
      "this job runs on {}, excluded by '{}'; start it without them (Slurm: sbatch --exclude={}), or remove the lines of "
      "hosts that are repaired from this file",
      describe(found), excluded_hosts_path(run_folder), fmt::join(names, ","));
}

void exclude_hosts(const std::string& run_folder, Index attempt, const HostNames& hosts, std::span<const int> ranks,
                   const std::string& reason) {
  const std::vector<ExcludedHost> known = read_excluded_hosts(run_folder);
  std::string lines;
  // Another reason of the attempt counts too: what follows from it may differ.
  const std::string kind = reason.substr(0, reason.find(','));
  std::set<std::string> added;
  for (const int rank : ranks) {
    const std::string& host = hosts.of_scheduler[static_cast<std::size_t>(rank)];
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const ExcludedHost& own) {
      return own.host == host && own.attempt == attempt && own.reason.find(": " + kind) != std::string::npos;
    });
    if (!is_known && added.insert(host).second)
      lines += fmt::format("{}\t{}\trank {}: {}\n", host, attempt, rank, reason);
  }
  if (added.empty()) return;
  try {
    std::string text = text_of_file(excluded_hosts_path(run_folder)).value_or("");  // what people wrote stays
    if (!text.empty() && text.back() != '\n') text += '\n';
    replace_text_file(excluded_hosts_path(run_folder), text + lines);
  } catch (const Error& error) {
    log::warn("{}; the job scripts will not leave out {}", error.what(), fmt::join(added, ", "));
  }
}

}  // namespace convoy
