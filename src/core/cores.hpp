// SPDX-License-Identifier: Apache-2.0
// Shares of a host's cores, and the cores that this process may use. Numbers are the operating system's, one per
// hardware thread.
#pragma once
#include <string>
#include <vector>

#include "core/topology.hpp"

namespace convoy {

/// Returns `0-3,8` for any list of numbers.
std::string print_cpu_list(const std::vector<int>& ids);
int count_cores(const std::vector<Cpu>& cpus);

/// Returns how many cores' worth of time the control group of this process allows (containers, batch systems): the
/// smallest limit of the group and the groups above it; 0: no limit. hwloc does not know these limits. `root` is put
/// before /proc and /sys, for tests.
double cpu_quota(const std::string& root = "");

/// Deals whole cores to `shares` in contiguous runs, so that a run crosses NUMA nodes only if the numbers do not fit.
/// Returns an empty list if there are fewer cores than shares.
std::vector<std::vector<int>> deal_cores(const std::vector<Cpu>& cpus, int shares);

/// Returns the hardware threads that this process was started on, read before main: OpenMP may have bound the main
/// thread to one core since.
const std::vector<int>& cores_at_start();
/// Restricts the calling thread, and the threads that it starts, to these hardware threads. Returns false if the system
/// refuses.
bool keep_to_cores(const std::vector<int>& ids);
/// Lets the calling thread use all cores of keep_to_cores, even if the thread that started it is bound to fewer.
void use_all_kept_cores();

}  // namespace convoy
