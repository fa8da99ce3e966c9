// SPDX-License-Identifier: Apache-2.0
// Cores of this host, and those that this process may use. Numbers are Linux's: one a hardware thread.
#pragma once
#include <string>
#include <vector>

namespace convoy {

struct Cpu {
  int id = 0;
  int core = 0;  ///< the lowest hardware thread of its core
  int node = 0;  ///< NUMA
  bool operator==(const Cpu&) const = default;
};

/// `0-3,8` as in /sys; anything else gives an empty list.
std::vector<int> parse_cpu_list(const std::string& text);
std::string print_cpu_list(std::vector<int> ids);

/// Those of `ids`, in the order of NUMA node, core, hardware thread. Where /sys does not say, every hardware thread is
/// a core of node 0. `root` is put before /sys, for tests.
std::vector<Cpu> describe_cpus(const std::vector<int>& ids, const std::string& root = "");
int count_cores(const std::vector<Cpu>& cpus);

/// Cores' worth of time that the control group of this process allows (containers, batch systems), the least of the
/// group and those above it; 0: no limit. `root` is put before /proc and /sys.
double cpu_quota(const std::string& root = "");

/// Whole cores dealt to `shares` in contiguous runs, so that a run crosses NUMA nodes only where the numbers do not
/// fit. Empty where there are fewer cores than shares.
std::vector<std::vector<int>> deal_cores(const std::vector<Cpu>& cpus, int shares);

/// What this process was given, read before main: OpenMP may have bound the main thread to one core since.
const std::vector<int>& cores_at_start();
/// From now on this process keeps to these: the calling thread and the threads it starts. False where the system
/// refuses.
bool keep_to_cores(const std::vector<int>& ids);
/// The calling thread may use all cores that the process keeps to, whatever the thread that started it is bound to.
void use_all_kept_cores();

}  // namespace convoy
