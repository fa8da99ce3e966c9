// SPDX-License-Identifier: Apache-2.0
#include "core/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>

#include "core/text.hpp"

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

/// Hosts of the job in PBS_NODEFILE with their numbers of places, in its order.
using Places = std::vector<std::pair<std::string, int>>;
Places pbs_places() {
  Places places;
  const char* path = std::getenv("PBS_NODEFILE");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string host; file >> host;) {
    const auto same =
        std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.first == host; });
    if (same == places.end()) {
      places.emplace_back(host, 1);
    } else {
      ++same->second;
    }
  }
  return places;
}

int count(const Places& places) {
  return std::accumulate(places.begin(), places.end(), 0,
                         [](int sum, const auto& place) { return sum + place.second; });
}

/// Not -hostfile: Open MPI takes a host that stands in it once to have a slot for each of its cores.
std::string mpirun_for(const Places& places) {
  std::string words;
  for (const auto& [host, slots] : places) words += fmt::format("{}{}:{}", words.empty() ? "" : ",", host, slots);
  return fmt::format("'mpirun -np {} -host {}'", count(places), words);
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

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

std::string hasty_launcher(const Launcher& launcher, double seconds) {
  // Job scripts hand SIGTERM on as SIGUSR1, which mpirun forwards and otherwise ignores.
  if (launcher.source != "OMPI_COMM_WORLD_SIZE" || std::getenv("CONVOY_JOB_SCRIPT") != nullptr) return {};
  int kept = number_in("OMPI_MCA_odls_base_sigkill_timeout");
  if (kept < 0) kept = number_in("PRTE_MCA_odls_base_sigkill_timeout");  // of Open MPI 5
  if (kept < 0) kept = 1;
  if (seconds <= kept) return {};
  return fmt::format(
      "mpirun kills the ranks {} s after it has handed SIGTERM or Ctrl-C on, and this run takes about {:.1f} s to stop (two "
      "steps and a checkpoint): such a stop would lose the steps since the last checkpoint. Stop the run with 'kill -USR1' "
      "and the process id of mpirun; or set OMPI_MCA_odls_base_sigkill_timeout={:.0f} for the next start (docs/cluster.md, "
      "Ctrl-C)",
      kept, seconds, std::ceil(seconds) + 1);
}

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
  const Places places = pbs_places();
  const int pbs = count(places);
  if (slurm <= 1 && pbs <= 1) return {};
  return fmt::format("this job has {} {}, but the program was started alone and uses one; put {} before it",
                     slurm > 1 ? slurm : pbs, slurm > 1 ? "tasks (SLURM_NTASKS)" : "places (PBS_NODEFILE)",
                     slurm > 1 ? "'srun --mpi=pmix'" : mpirun_for(places));
}

HostShares compare_with_node_file(const std::vector<std::string>& hosts_of_ranks) {
  const Places places = pbs_places();
  std::map<std::string, int> ranks;
  for (const std::string& host : hosts_of_ranks) ++ranks[short_name(host)];
  const bool all = static_cast<int>(hosts_of_ranks.size()) == count(places);
  std::string wrong;
  bool known = false;  // a node file may call hosts by other names than they do themselves
  for (const auto& [host, slots] : places) {
    const auto found = ranks.find(short_name(host));
    const int here = found == ranks.end() ? 0 : found->second;
    known = known || here > 0;
    if (here == slots || (here > 0 && !all)) continue;
    wrong += fmt::format("{}{} runs {} of its {}", wrong.empty() ? "" : ", ", host, here, counted(slots, "rank"));
  }
  if (wrong.empty() || !known) return {};
  return {all, fmt::format("the ranks are not where PBS_NODEFILE has places for them: {}; start them with {}", wrong,
                           mpirun_for(places))};
}

}  // namespace convoy
