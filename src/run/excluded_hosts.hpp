// SPDX-License-Identifier: Apache-2.0
// RUN_DIR/excluded-hosts: hosts that a run must avoid, one per line: host, attempt that found it, reason, separated by
// tabs. Job scripts read the first word of each line. A line that begins with # is a comment.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/types.hpp"

namespace convoy {

struct ExcludedHost {
  std::string host;
  Index attempt = 0;
  std::string reason;
};

std::string excluded_hosts_path(const std::string& run_folder);

/// The host of each rank, as it calls itself and as the job's scheduler calls it. Slurm's name of a node (NodeName) may
/// have a domain, or be another one.
struct HostNames {
  std::vector<std::string> own, of_scheduler;
};
/// Slurm's name of this process's host (SLURMD_NODENAME). Empty: it isn't set, or a launcher may have handed on that of
/// the host where it was started.
std::string node_of(const std::string& host);
/// `nodes`: node_of() of each rank. If it is empty, or a launcher handed the same value to two hosts, the host's own
/// name stands.
HostNames match_nodes(std::vector<std::string> hosts, const std::vector<std::string>& nodes);
/// Collective.
HostNames names_of_hosts(Communicator& communicator);

/// Adds the hosts of these ranks that the file lacks for this attempt and kind of reason, which is what stands before
/// the first comma. If the file can't be written, a warning says so.
void exclude_hosts(const std::string& run_folder, Index attempt, const HostNames& hosts, std::span<const int> ranks,
                   const std::string& reason);

/// Empty if there is no such file.
std::vector<ExcludedHost> read_excluded_hosts(const std::string& run_folder);

/// Those of the file on which a job with these hosts runs, one entry per host, the latest. Both names of a host count,
/// without their domain.
std::vector<ExcludedHost> excluded_among(const std::string& run_folder, const HostNames& hosts);

/// `n1 (attempt 2, rank 3: computed other bits) and n4`.
std::string describe(const std::vector<ExcludedHost>& hosts);
/// What a start on such hosts should warn of: file, hosts, remedy. Empty: there are none.
std::string warning_of_excluded(const std::string& run_folder, const HostNames& hosts);

}  // namespace convoy
