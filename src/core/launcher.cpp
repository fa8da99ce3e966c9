// SPDX-License-Identifier: Apache-2.0
#include "core/launcher.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace convoy {
namespace {

/// -1: not set, or not a number.
int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return -1;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return end != text && *end == 0 && value >= 0 && value <= 1 << 30 ? static_cast<int>(value) : -1;
}

int lines_of(const char* path) {
  int lines = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines += line.empty() ? 0 : 1;
  return lines;
}

const Launcher at_start = read_launcher();

}  // namespace

Launcher read_launcher() {
  // Inside a Slurm job the ranks of mpirun see the variables of the batch step, or of the step that started orted: what
  // belongs to mpirun goes first.
  if (const int size = number_in("OMPI_COMM_WORLD_SIZE"); size > 0)
    return {"mpirun", "OMPI_COMM_WORLD_SIZE", std::max(number_in("OMPI_COMM_WORLD_RANK"), 0), size};
  const bool in_step = number_in("SLURM_STEP_NUM_TASKS") > 0 && number_in("SLURM_PROCID") >= 0;
  if (in_step) return {"srun", "SLURM_STEP_NUM_TASKS", number_in("SLURM_PROCID"), number_in("SLURM_STEP_NUM_TASKS")};
  if (const int size = number_in("PMI_SIZE"); size > 0)
    return {"mpiexec", "PMI_SIZE", std::max(number_in("PMI_RANK"), 0), size};
  // PMIx tells no size; a rank above 0 tells that there is more than one.
  if (const int rank = number_in("PMIX_RANK"); rank >= 0) return {"mpiexec", "PMIX_RANK", rank, rank + 1};
  return {};
}

const Launcher& launcher_at_start() { return at_start; }

std::string lonely_worlds(const Launcher& launcher, int world_size) {
  if (world_size > 1 || launcher.size <= 1) return {};
  const std::string remedy =
      launcher.name == "srun"
          ? "use 'srun --mpi=pmix' ('srun --mpi=list' shows what this Slurm has), or mpirun of the MPI that convoy was built with"
          : "start it with mpirun of the MPI that convoy was built with ('convoy --version' names it, 'which mpirun' what is used now)";
  return fmt::format(
      "{} started {} processes ({}), but each is a world of 1 rank (launcher and MPI library do not understand each other); {}. For separate one-rank runs on purpose: env -u {} convoy ...",
      launcher.name, launcher.size, launcher.source, remedy, launcher.source);
}

std::string forgotten_launcher(const Launcher& launcher, int world_size) {
  if (world_size > 1 || !launcher.name.empty()) return {};
  const int slurm = number_in("SLURM_NTASKS");
  const char* nodes = std::getenv("PBS_NODEFILE");
  const int pbs = nodes != nullptr ? lines_of(nodes) : 0;
  if (slurm <= 1 && pbs <= 1) return {};
  return fmt::format("this job has {} {}, but the program was started alone and uses one; put {} before it",
                     slurm > 1 ? slurm : pbs, slurm > 1 ? "tasks (SLURM_NTASKS)" : "places (PBS_NODEFILE)",
                     slurm > 1 ? "'srun --mpi=pmix'" : "'mpirun -hostfile $PBS_NODEFILE'");
}

}  // namespace convoy
