// SPDX-License-Identifier: Apache-2.0
// Rank placement: host, cores, NUMA nodes and threads of each rank. Ranks that the launcher left on the same cores get
// cores of their own.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Who decided on which cores a rank runs. launcher: mpirun, srun or the batch system; openmp: OMP_PROC_BIND and the
/// like; shared: nobody, the rank shares them with other ranks of its host; whole: nobody, the rank has the whole host.
enum class Binding : std::uint8_t { launcher, convoy, openmp, shared, whole };
const char* name_of(Binding binding);

struct RankPlacement {
  int rank = 0, node_rank = 0;
  std::string host;
  Index pid = 0;
  std::vector<int> given;  ///< hardware threads on which the rank was started
  std::vector<int> cpus;   ///< hardware threads on which it runs
  std::vector<int> nodes;  ///< NUMA nodes of `cpus`
  int cores = 1;           ///< number of whole cores among `cpus`
  double quota = 0;        ///< cores' worth of time that its control group allows to all its processes; 0: no limit
  int threads = 1;
  Binding binding = Binding::whole;
  std::string device;    ///< description of its device, empty until the device is open
  std::string identity;  ///< Device::identity of a GPU
};

struct JobPlacement {
  std::vector<RankPlacement> ranks;
  int threads = 1;  ///< threads of every rank
};

/// What one rank finds on its host.
struct HostView {
  std::vector<int> ids;               ///< hardware threads on which the rank was started
  std::vector<int> core_of, node_of;  ///< core and NUMA node of each of `ids`
  double quota = 0;
  int online = 0;           ///< number of hardware threads of the host
  int omp_num_threads = 0;  ///< OMP_NUM_THREADS; 0: not set
  bool openmp_binds = false;
  int gpu_node = -1;  ///< NUMA node of its GPU; -1: the rank has no GPU, or the node is not known
};
/// Returns the same on all ranks. If several ranks of a host were given the very same cores, and nobody else uses
/// these, each gets a contiguous share, on the NUMA node of its GPU if that is known and has cores enough. If there are
/// fewer cores than ranks, a control group allows less, or OpenMP binds, the ranks stay where they are.
JobPlacement place(const std::vector<std::string>& hosts, const std::vector<HostView>& given, Bind bind, int threads);

/// Collective. Gathers what the ranks find on their hosts, places them, and binds this rank (once per process). The
/// number of threads is --threads, else OMP_NUM_THREADS, else the cores of the rank's share, at most its share of the
/// control group's limit. The lowest number of all ranks counts: threads decide bits, and a replica's bits must not
/// depend on its rank.
JobPlacement place_ranks(Communicator& communicator, const DeviceConfig& config);

/// Returns one text for each group of ranks with more threads than cores, or than a control group allows.
std::vector<std::string> find_overbooked_cores(const JobPlacement& placement);

/// Ranks that share one GPU, or that have none while others have one.
struct SharedDevice {
  std::string text;
  std::vector<int> ranks;
};
std::vector<SharedDevice> find_shared_devices(const JobPlacement& placement);

/// Returns a table of the ranks. With many ranks, equal hosts share a row, and so do equal ranks that follow each
/// other.
std::string table_of(const JobPlacement& placement);

}  // namespace convoy
