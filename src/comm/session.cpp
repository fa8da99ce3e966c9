// SPDX-License-Identifier: Apache-2.0
#include "comm/session.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

#include "comm/state.hpp"
#include "core/clock.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

bool has_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID"})
    if (is_set(variable)) return true;
  return false;
}

/// Asks mpirun's variables; other launchers are not asked.
bool all_ranks_on_this_host() {
  const char *all = std::getenv("OMPI_COMM_WORLD_SIZE"), *local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return !has_launcher() || (all && local && std::string(all) == local);
}

/// Options of mpirun (--mca pml ...) arrive as variables too.
bool user_chose_transport() {
  for (const char* variable : {"OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_mca_param_files",
                               "OMPI_MCA_mca_base_param_files", "OMPI_MCA_mca_base_param_file_prefix"})
    if (is_set(variable)) return true;
  const char* home = std::getenv("HOME");
  return home && access((std::string(home) + "/.openmpi/mca-params.conf").c_str(), F_OK) == 0;
}

/// Open MPI probes network fabrics for 0.2 s unless it is told what to use.
void choose_shared_memory() {
#ifdef OPEN_MPI
  if (!all_ranks_on_this_host() || user_chose_transport()) return;
  setenv("OMPI_MCA_pml", "ob1", 0);
  setenv("OMPI_MCA_btl", OMPI_MAJOR_VERSION < 5 ? "self,vader" : "self,sm", 0);
#endif
}

/// A program started alone otherwise starts a daemon for ranks it might spawn (0.1 s). It needs no session folder: all
/// such programs of a user would share one, and one that ends removes it while another starts (Open MPI 4.1.4).
void start_alone() {
#ifdef OPEN_MPI
  if (has_launcher()) return;
  setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
#endif
}

/// A folder of scripts/bundle.sh brings its own Open MPI, which else looks for its plugins where it was built. With
/// this the program starts alone, or by srun, without the folder's `run`.
void use_own_open_mpi() {
#ifdef OPEN_MPI
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
  if (failed || !fs::exists(folder / "share/convoy/bundle", failed)) return;
  setenv("OPAL_PREFIX", folder.c_str(), 0);
  setenv("OPAL_SYSCONFDIR", (folder / "etc/openmpi").c_str(), 0);
  setenv("PMIX_PKGLIBDIR", (folder / "lib/pmix").c_str(), 0);
  setenv("PMIX_PKGDATADIR", (folder / "share/pmix").c_str(), 0);
#endif
}

/// The default for sums in place goes up and down a binomial tree: twice the traffic, and one rank adds everything.
/// Halving and doubling (Rabenseifner, ICCS 2004) took 0.06 instead of 0.10 ms for 0.4 MB between two ranks (Open
/// MPI 4.1.4).
void choose_reduction() {
#ifdef OPEN_MPI
  setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "rabenseifner", 0);
#endif
}

/// Collective. Afterwards the time of MPI_Finalize tells nothing of ranks that come late. Without a limit, as
/// MPI_Finalize waits; an error of MPI_COMM_WORLD ends the job itself.
void wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return;
  const StallPolicy patient{.limits = {.warn_seconds = 0, .abort_seconds = 0}, .rank = 0, .explain = {}};
  Deadline deadline(patient);
  for (int arrived = 0; MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) == MPI_SUCCESS && !arrived;)
    deadline.pause("end of the program");
}

/// mpirun ends the job with 1 if it learns that a process is gone before it has read that process's finalize message.
/// PMIx, in MPI_Finalize, waits 2 s for the answer to that (4.2.2; 10 s in 5.0) and then returns as if it had come. The
/// answers took 1.6 s for 256 ranks on two cores, for 352 more than 2 s. So a rank whose MPI_Finalize took that long
/// stays a while; asleep, it leaves the cores to mpirun.
void stay_for_launcher(double finalize_seconds) {
  constexpr double answered_seconds = 2, least_seconds = 5, most_seconds = 30, nap_seconds = 0.1;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr || finalize_seconds < answered_seconds) return;
  for (double left = std::clamp(finalize_seconds, least_seconds, most_seconds); left > 0; left -= nap_seconds) {
    real_clock().sleep(nap_seconds);
    progress().mark();
  }
}

}  // namespace

Session::Session(int& argc, char**& argv) {
  use_own_open_mpi();
  choose_shared_memory();
  start_alone();
  choose_reduction();
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", "start of the program");
  if (provided < MPI_THREAD_FUNNELED)
    fail(
        Exit::communication,
        "this MPI library allows no threads beside MPI (level {}, MPI_THREAD_FUNNELED is needed); build it with threads",
        provided);
}

Session::~Session() {
  // With an exception in flight the others may sit in a collective: finalising would wait for them for ever.
  if (std::uncaught_exceptions() > 0) return;
  wait_for_all();
  const Instant begin = real_clock().now();
  MPI_Finalize();
  stay_for_launcher(seconds_since(begin));
}

int world_size() {
  int size = 1;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size", "start of the program");
  return size;
}

void abort_job(Exit code) {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised && !finalised) {
    // A rank alone keeps nobody waiting: it leaves without the library's words about an abort.
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) {
      MPI_Finalize();
    } else {
      MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
    }
  }
  // No exit handlers and no destructors: one of them might wait for another rank.
  _exit(static_cast<int>(code));
}

}  // namespace convoy
