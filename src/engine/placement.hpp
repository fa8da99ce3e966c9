// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job sit: host, cores, NUMA nodes, threads; and a place of their own for ranks that the launcher
// left all on the same cores.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"

namespace convoy {

/// Who decided on which cores a rank runs. launcher: mpirun, srun or the batch system; openmp: OMP_PROC_BIND and the
/// like; shared: nobody, it shares them with other ranks of its host; whole: nobody, it has the whole host.
enum class Binding : std::uint8_t { launcher, convoy, openmp, shared, whole };
const char* name_of(Binding binding);

struct Seat {
  int rank = 0, node_rank = 0;
  std::string host;
  Index pid = 0;
  std::vector<int> given;  ///< hardware threads that it was started on
  std::vector<int> cpus;   ///< and those it runs on
  std::vector<int> nodes;  ///< NUMA nodes of these
  int cores = 1;           ///< whole cores among them
  double quota = 0;        ///< cores' worth of time that its control group allows, with all others in it; 0: no limit
  int threads = 1;
  Binding binding = Binding::whole;
  std::string device;    ///< once there is one
  std::string identity;  ///< Device::identity: of a GPU
};

struct Seating {
  std::vector<Seat> seats;  ///< one a rank
  int threads = 1;          ///< of every rank
};

/// What one rank finds on its host.
struct Given {
  std::vector<int> ids;
  std::vector<int> core_of, node_of;  ///< of each
  double quota = 0;
  int online = 0;          ///< hardware threads of the host
  int wished_threads = 0;  ///< OMP_NUM_THREADS; 0: not set
  bool openmp_binds = false;
  int gpu_node = -1;  ///< NUMA node of its GPU; -1: it has none, or that isn't known
};
/// The same on all ranks. Ranks of a host that were given the very same cores, with nobody else on them, get contiguous
/// shares, on the NUMA nodes of their GPUs where those are known and have cores enough; where they are fewer cores than
/// ranks, a control group allows less, or OpenMP binds, they stay as they are.
Seating seat(const std::vector<std::string>& hosts, const std::vector<Given>& given, Bind bind, int threads);

/// Collective. Looks, agrees, and (once a process) binds this rank. threads: --threads, else OMP_NUM_THREADS, else the
/// cores of the rank's share, at most its share of the control group's limit; the lowest number of all ranks, since
/// threads decide bits and replicas must not depend on ranks.
Seating take_seats(Communicator& communicator, const DeviceConfig& config);

/// More threads than cores, or than a control group allows: one text for each group of ranks that has it.
std::vector<std::string> find_overbooked_cores(const Seating& seating);

/// Ranks that have one GPU together, or none where others have one.
struct SharedDevice {
  std::string text;
  std::vector<int> ranks;
};
std::vector<SharedDevice> find_shared_devices(const Seating& seating);

/// A table of the ranks, folded where there are many: equal hosts in one row, runs of equal ranks in one row.
std::string table_of(const Seating& seating);

}  // namespace convoy
