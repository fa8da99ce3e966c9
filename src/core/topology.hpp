// SPDX-License-Identifier: Apache-2.0
// Cores, NUMA nodes and GPUs of a host, from hwloc, the library with which Open MPI places its processes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace convoy {

/// One hardware thread. Numbers are the operating system's.
struct Cpu {
  int id = 0;
  int core = 0;  ///< the lowest hardware thread of its core
  int node = 0;  ///< NUMA node
  bool operator==(const Cpu&) const = default;
};

class Topology {
 public:
  /// The host of this process. The first call detects it, which takes some milliseconds.
  static const Topology& of_this_host();
  /// A host that an XML text of hwloc's `lstopo --of xml` describes, for tests.
  explicit Topology(const std::string& xml);
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  ~Topology();

  /// Describes the hardware threads `ids`, sorted by NUMA node, core and number. A thread that hwloc does not know
  /// counts as a core of node 0.
  std::vector<Cpu> describe(const std::vector<int>& ids) const;
  /// NUMA nodes of the NVIDIA GPUs that a process sees, in the order in which CUDA counts equal ones (by PCI address).
  /// `visible` is the value of CUDA_VISIBLE_DEVICES, null if it is not set. -1: the system does not tell the node.
  /// Empty: there is no GPU, or `visible` does not name GPUs by number.
  std::vector<int> gpu_nodes(const char* visible) const;

 private:
  Topology();
  void load();
  struct State;
  std::unique_ptr<State> state_;
};

// Shares of a host's cores, and the cores that this process may use. Numbers are the operating system's, one per
// hardware thread.

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

/// Instruction sets of x86 for which there are kernels, each with those before it; oneDNN's names.
enum class CpuIsa : std::uint8_t { avx2, avx512_core, avx512_core_bf16, avx512_core_amx };

/// The largest instruction set that kernels may use, ours and oneDNN's: CONVOY_MAX_CPU_ISA in the environment,
/// avx512_core_amx (all of them) if it is unset. Throws Error(usage) if it has another value than AVX2, AVX512_CORE,
/// AVX512_CORE_BF16, AVX512_CORE_AMX.
CpuIsa max_cpu_isa();

}  // namespace convoy
