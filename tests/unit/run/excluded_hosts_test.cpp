// SPDX-License-Identifier: Apache-2.0
#include "run/excluded_hosts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/temp_folder.hpp"

namespace convoy {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// As programs write it and as people edit it.
constexpr const char* edited =
    "# n7 is repaired\r\n"
    "\r\n"
    "n1.cluster.local\t2\trank 3: arithmetic, step 5\r\n"
    "  n4 \n"
    "10.0.0.7\n"
    "n1\t6\trank 0: slow\n";

/// Of a job whose scheduler gives its nodes no names.
HostNames without_scheduler(const std::vector<std::string>& hosts) {
  return match_nodes(hosts, std::vector<std::string>(hosts.size()));
}

TEST(ExcludedHosts, ReadsWhatPeopleEdit) {
  const TempFolder run;
  EXPECT_TRUE(read_excluded_hosts(run.path()).empty());
  std::ofstream(excluded_hosts_path(run.path())) << edited;
  const std::vector<ExcludedHost> hosts = read_excluded_hosts(run.path());
  ASSERT_EQ(hosts.size(), 4U);
  EXPECT_EQ(hosts[0].host, "n1.cluster.local");
  EXPECT_EQ(hosts[0].attempt, 2);
  EXPECT_EQ(hosts[0].reason, "rank 3: arithmetic, step 5");
  EXPECT_EQ(hosts[1].host, "n4");
  EXPECT_EQ(hosts[1].reason, "");
  EXPECT_EQ(hosts[2].host, "10.0.0.7");
}

TEST(ExcludedHosts, FindsThoseOfAJobWhateverTheirDomain) {
  const TempFolder run;
  std::ofstream(excluded_hosts_path(run.path())) << edited;
  const auto found = [&](const std::vector<std::string>& hosts) {
    return describe(excluded_among(run.path(), without_scheduler(hosts)));
  };
  EXPECT_EQ(found({"n0", "n7", "10.0.0.8"}), "");
  EXPECT_EQ(found({"n1", "n1"}), "n1 (attempt 6, rank 0: slow)") << "the latest line";
  EXPECT_EQ(found({"n4.cluster.local", "n1.elsewhere", "10.0.0.7"}), "n4, 10.0.0.7 and n1 (attempt 6, rank 0: slow)");
  EXPECT_EQ(warning_of_excluded(run.path(), without_scheduler({"n0"})), "");
  const std::string text = warning_of_excluded(run.path(), without_scheduler({"n0", "n4"}));
  for (const char* part : {"this job runs on n4", "/excluded-hosts'", "--exclude=n4", "repaired"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(ExcludedHosts, AddsToWhatPeopleWrote) {
  const TempFolder run;
  std::ofstream(excluded_hosts_path(run.path())) << "# by hand\nn4";
  const std::array<int, 1> ranks{1};
  exclude_hosts(run.path(), 3, without_scheduler({"n0", "n2"}), ranks, "arithmetic, step 5");
  const std::string wanted = "# by hand\nn4\nn2\t3\trank 1: arithmetic, step 5\n";
  EXPECT_EQ(text_of(excluded_hosts_path(run.path())), wanted);
  exclude_hosts(run.path(), 3, without_scheduler({"n0", "n2"}), ranks, "arithmetic, step 9");
  EXPECT_EQ(text_of(excluded_hosts_path(run.path())), wanted) << "known";
}

TEST(ExcludedHosts, HaveTheNamesThatSlurmKnows) {
  const TempFolder run;
  const HostNames hosts = match_nodes({"n0", "n1", "gpu-7"}, {"n0.cluster.local", "n1.cluster.local", "c7"});
  const std::array<int, 2> ranks{1, 2};
  exclude_hosts(run.path(), 3, hosts, ranks, "arithmetic, step 5");
  EXPECT_EQ(text_of(excluded_hosts_path(run.path())),
            "n1.cluster.local\t3\trank 1: arithmetic, step 5\nc7\t3\trank 2: arithmetic, step 5\n");
  EXPECT_NE(warning_of_excluded(run.path(), hosts).find("--exclude=n1.cluster.local,c7)"), std::string::npos);
  std::ofstream(excluded_hosts_path(run.path())) << "n1\ngpu-7.cluster.local\n";  // as a user calls them
  EXPECT_NE(warning_of_excluded(run.path(), hosts).find("--exclude=n1.cluster.local,c7)"), std::string::npos);
  EXPECT_EQ(warning_of_excluded(run.path(), match_nodes({"n0"}, {"n0.cluster.local"})), "");
}

TEST(ExcludedHosts, TakeNoNameThatALauncherMayHaveHandedOn) {
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURMD_NODENAME");
  EXPECT_EQ(node_of("n0"), "");
  setenv("SLURMD_NODENAME", "n0.cluster.local", 1);
  EXPECT_EQ(node_of("n0"), "n0.cluster.local");
  EXPECT_EQ(node_of("n1"), "") << "mpirun in the batch script of n0";
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  EXPECT_EQ(node_of("gpu-7"), "n0.cluster.local") << "as srun says of each task";
  setenv("MPI_LOCALNRANKS", "1", 1);
  EXPECT_EQ(node_of("gpu-7"), "") << "Hydra hands mpiexec's on";
  EXPECT_EQ(node_of("n0"), "n0.cluster.local");
  unsetenv("MPI_LOCALNRANKS");
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURMD_NODENAME");
}

TEST(ExcludedHosts, KeepTheirOwnNameIfALauncherHandsOneNodesNameOn) {
  EXPECT_EQ(match_nodes({"n0", "n0", "n1", "n2"}, {"c0", "c0", "c0", ""}).of_scheduler,
            (std::vector<std::string>{"n0", "n0", "n1", "n2"}));
}

}  // namespace
}  // namespace convoy
