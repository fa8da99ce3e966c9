// SPDX-License-Identifier: Apache-2.0
// What the environment says of whoever started this process, before MPI is there to ask and to check what it says.
#pragma once
#include <string>
#include <vector>

namespace convoy {

struct Launcher {
  std::string name;    ///< `mpirun`, `srun`, `mpiexec`; empty: started alone
  std::string source;  ///< the variable that told `size`
  int rank = 0;        ///< as the launcher counts
  int size = 1;        ///< processes that it started
};
Launcher read_launcher();
/// Read before main: MPI_Init of a process without launcher sets such variables itself.
const Launcher& launcher_at_start();

/// Open MPI's mpirun kills its ranks some seconds after it has handed SIGTERM or Ctrl-C on
/// (odls_base_sigkill_timeout). What to say if a job needs more `seconds` than that to stop with a checkpoint. Empty:
/// it does not, or another launcher or a job script of Convoy started this process.
std::string hasty_launcher(const Launcher& launcher, double seconds);

/// A launcher that started several processes, each of which MPI takes for a job of its own, would train the same
/// network N times into the same folder. What to say then, with the remedy; empty: `world_size` is what the launcher
/// said.
std::string lonely_worlds(const Launcher& launcher, int world_size);

/// What the node file of a PBS job says of the hosts of its ranks: hosts that carry none, or others than their share.
/// misplaced: as many ranks as the job has places, but elsewhere.
struct HostShares {
  bool misplaced = false;
  std::string text;  ///< empty: nothing is wrong, or this is no PBS job
};
HostShares compare_with_node_file(const std::vector<std::string>& hosts_of_ranks);

/// A batch job that was given several tasks and starts the program once, without srun or mpirun: what to say; empty: it
/// did not.
std::string forgotten_launcher(const Launcher& launcher, int world_size);

}  // namespace convoy
