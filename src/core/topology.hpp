// SPDX-License-Identifier: Apache-2.0
// Cores, NUMA nodes and GPUs of a host, from hwloc, the library with which Open MPI places its processes.
#pragma once
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

}  // namespace convoy
