// SPDX-License-Identifier: Apache-2.0
#include "core/launcher.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "support/temp_folder.hpp"

namespace convoy {
namespace {

using testing::HasSubstr;

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
          "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PBS_NODEFILE", "OMPI_MCA_odls_base_sigkill_timeout",
          "PRTE_MCA_odls_base_sigkill_timeout", "CONVOY_JOB_SCRIPT"}) {
      unsetenv(name);
    }
  }
  void TearDown() override { SetUp(); }
  static Launcher read(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    return read_launcher();
  }
};

TEST_F(LauncherTest, Alone) {
  const Launcher alone = read({});
  EXPECT_EQ(alone.name, "");
  EXPECT_EQ(alone.rank, 0);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(lonely_worlds(alone, 1), "");
  EXPECT_EQ(forgotten_launcher(alone, 1), "");
}

TEST_F(LauncherTest, MpirunGoesBeforeTheSlurmJobAroundIt) {
  const Launcher mpirun = read({{"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_RANK", "3"},
                                {"PMIX_RANK", "3"},
                                {"SLURM_PROCID", "1"},
                                {"SLURM_STEP_NUM_TASKS", "2"},
                                {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(mpirun.name, "mpirun");
  EXPECT_EQ(mpirun.rank, 3);
  EXPECT_EQ(mpirun.size, 4);
  EXPECT_EQ(lonely_worlds(mpirun, 4), "");
  EXPECT_EQ(lonely_worlds({"mpirun", "OMPI_COMM_WORLD_SIZE", 0, 1}, 1), "");
}

TEST_F(LauncherTest, MpirunKillsBeforeALongStepAndACheckpointAreDone) {
  const Launcher mpirun = read({{"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(hasty_launcher(mpirun, 0.9), "");
  EXPECT_THAT(hasty_launcher(mpirun, 7.2), HasSubstr("kills the ranks 1 s after"));
  EXPECT_THAT(hasty_launcher(mpirun, 7.2), HasSubstr("takes about 7.2 s to stop"));
  EXPECT_THAT(hasty_launcher(mpirun, 7.2), HasSubstr("OMPI_MCA_odls_base_sigkill_timeout=9"));
  setenv("OMPI_MCA_odls_base_sigkill_timeout", "9", 1);
  EXPECT_EQ(hasty_launcher(mpirun, 7.2), "");
  EXPECT_THAT(hasty_launcher(mpirun, 9.5), HasSubstr("kills the ranks 9 s after"));
  EXPECT_EQ(hasty_launcher({"srun", "SLURM_STEP_NUM_TASKS", 0, 2}, 99), "") << "Slurm's own time, KillWait, counts";
  EXPECT_EQ(hasty_launcher({}, 99), "");
  setenv("CONVOY_JOB_SCRIPT", "slurm/resnet50.sh", 1);
  EXPECT_EQ(hasty_launcher(mpirun, 99), "") << "it hands SIGTERM on as SIGUSR1";
}

TEST_F(LauncherTest, SrunWithoutPmix) {
  const Launcher srun = read({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(srun.rank, 2);
  const std::string text = lonely_worlds(srun, 1);
  EXPECT_THAT(text, HasSubstr("srun started 4 processes (SLURM_STEP_NUM_TASKS), but each is a world of 1 rank"));
  EXPECT_THAT(text, HasSubstr("srun --mpi=pmix"));
  EXPECT_EQ(lonely_worlds(srun, 4), "");
}

TEST_F(LauncherTest, AnotherMpisMpiexec) {
  const Launcher hydra = read({{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}});
  EXPECT_EQ(hydra.rank, 5);
  EXPECT_THAT(lonely_worlds(hydra, 1), HasSubstr("mpiexec started 8 processes (PMI_SIZE)"));
  EXPECT_THAT(lonely_worlds(hydra, 1), HasSubstr("env -u PMI_SIZE convoy"));
}

TEST_F(LauncherTest, NumbersThatAreNone) {
  EXPECT_EQ(read({{"PMI_SIZE", "many"}}).size, 1);
  EXPECT_EQ(read({{"PMI_SIZE", "-3"}}).size, 1);
}

/// A batch script runs on one host as task 0 of 4: the program alone there is legal, and mostly a mistake.
TEST_F(LauncherTest, AForgottenLauncherIsSaid) {
  const Launcher batch = read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(batch.name, "");
  EXPECT_EQ(lonely_worlds(batch, 1), "");
  EXPECT_THAT(forgotten_launcher(batch, 1),
              HasSubstr("this job has 4 tasks (SLURM_NTASKS), but the program was started alone"));
  SetUp();
  const TempFolder folder;
  std::ofstream(folder / "nodes") << "p0\np0\np1\n";
  const Launcher pbs = read({{"PBS_NODEFILE", folder / "nodes"}});
  EXPECT_THAT(forgotten_launcher(pbs, 1), HasSubstr("3 places (PBS_NODEFILE)"));
  EXPECT_THAT(forgotten_launcher(pbs, 1), HasSubstr("'mpirun -np 3 -host p0:2,p1:1'"));
  EXPECT_EQ(forgotten_launcher(pbs, 3), "");
}

TEST_F(LauncherTest, RanksAreComparedWithTheNodeFile) {
  EXPECT_EQ(compare_with_node_file({"p0", "p0"}).text, "") << "no PBS job";
  const TempFolder folder;
  std::ofstream(folder / "nodes") << "p0.site\np1.site\np1.site\n";
  setenv("PBS_NODEFILE", (folder / "nodes").c_str(), 1);
  EXPECT_EQ(compare_with_node_file({"p0", "p1", "p1"}).text, "");
  const HostShares wrong = compare_with_node_file({"p0", "p0", "p1"});
  EXPECT_TRUE(wrong.misplaced);
  EXPECT_THAT(wrong.text, HasSubstr("p0.site runs 2 of its 1 rank, p1.site runs 1 of its 2 ranks; start them with "
                                    "'mpirun -np 3 -host p0.site:1,p1.site:2'"));
  EXPECT_EQ(compare_with_node_file({"p0", "p1"}).text, "") << "fewer ranks on purpose, on all hosts";
  const HostShares idle = compare_with_node_file({"p1", "p1"});
  EXPECT_FALSE(idle.misplaced);
  EXPECT_THAT(idle.text, HasSubstr("p0.site runs 0 of its 1 rank;"));
  EXPECT_EQ(compare_with_node_file({"a", "b", "b"}).text, "") << "hosts that the node file calls otherwise";
}

}  // namespace
}  // namespace convoy
