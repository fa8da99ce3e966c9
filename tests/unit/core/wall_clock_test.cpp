// SPDX-License-Identifier: Apache-2.0
#include "core/wall_clock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

namespace convoy {
namespace {

class WallClockTest : public testing::Test {
 protected:
  WallClockTest() {
    setenv("TZ", "CET-1", 1);
    tzset();
    for (const char* name : {"SLURM_JOB_END_TIME", "PBS_WALLTIME", "PBS_JOBID"}) unsetenv(name);
  }
};

TEST_F(WallClockTest, ReadsDurationsAsSchedulersWriteThem) {
  EXPECT_EQ(parse_duration("90"), 90);
  EXPECT_EQ(parse_duration("1.5"), 1.5);
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("15m"), 900);
  EXPECT_EQ(parse_duration("2h"), 7200);
  EXPECT_EQ(parse_duration("1d"), 86400);
  EXPECT_EQ(parse_duration("02:30"), 150);
  EXPECT_EQ(parse_duration("90:00"), 5400);
  EXPECT_EQ(parse_duration("100:00:00"), 360000);
  EXPECT_EQ(parse_duration("01:02:03"), 3723);
  EXPECT_EQ(parse_duration("2-01"), 2 * 86400 + 3600);
  EXPECT_EQ(parse_duration("2-01:30"), 2 * 86400 + 5400);
  EXPECT_EQ(parse_duration("2-01:30:05"), 2 * 86400 + 5405);
  for (const char* bad : {"", "-", "1-", ":", "1:", ":1", "1:2:3:4", "x", "1x", "-5", "h", "1e99", "nan", "1:-2",
                          "99:99:99", "1:60", "1-00:60"})
    EXPECT_THROW(parse_duration(bad), std::invalid_argument) << bad;
}

TEST_F(WallClockTest, ReadsTimesOfDay) {
  EXPECT_EQ(parse_end_time("1795867387"), 1795867387);
  EXPECT_EQ(parse_end_time("2026-11-28T13:03:07"), 1795867387);
  EXPECT_EQ(parse_end_time("2026-11-28 13:03"), 1795867380);
  EXPECT_EQ(parse_end_time("2028-02-29T00:00:00"), 1835391600);
  EXPECT_EQ(local_time_text(1795867387), "2026-11-28 13:03:07");
  for (const char* none : {"NONE", "N/A", "UNLIMITED", "Unknown", "0"}) EXPECT_EQ(parse_end_time(none), 0) << none;
  for (const char* bad : {"tomorrow", "2026-13-28T13:03:07", "2026-11-28T13:03:07x", "13:03", "2026-02-30T00:00:00",
                          "2026-02-29", "2026-04-31 10:00"})
    EXPECT_THROW(parse_end_time(bad), std::invalid_argument) << bad;
}

TEST_F(WallClockTest, TheEarliestLimitCounts) {
  EXPECT_EQ(end_of_job({}).time, 0);
  const double soon = wall_seconds() + 1000;
  EXPECT_EQ(end_of_job({.end_time = soon}).time, soon);
  EXPECT_EQ(end_of_job({.end_time = soon, .limit_seconds = 5000}).source, "--end-time");
  const EndOfJob limited = end_of_job({.end_time = soon, .limit_seconds = 500});
  EXPECT_EQ(limited.source, "--time-limit");
  EXPECT_NEAR(limited.time, wall_seconds() + 500, 60);  // from the start of this program
  setenv("SLURM_JOB_END_TIME", "1000", 1);
  EXPECT_EQ(end_of_job({.end_time = soon}).source, "SLURM_JOB_END_TIME");
  setenv("SLURM_JOB_END_TIME", "rubbish", 1);
  EXPECT_EQ(end_of_job({.end_time = soon}).source, "--end-time");
}

TEST_F(WallClockTest, PbsCountsFromTheStartOfTheJob) {
  setenv("PBS_WALLTIME", "00:10:00", 1);
  EXPECT_EQ(end_of_job({}).time, 0);  // no job
  setenv("PBS_JOBID", "7.server", 1);
  EXPECT_NEAR(end_of_job({}).time, wall_seconds() + 600, 60);
  EXPECT_EQ(end_of_job({}).source, "PBS_WALLTIME");
}

TEST_F(WallClockTest, TheJobsShellIsOlderThanTheProgram) {
  // The shell has the job's id and sleeps before it starts the program; without `true` it would become the program.
  FILE* pipe = popen("PBS_JOBID=7.server sh -c 'sleep 0.3; " JOB_START_PROBE "; true'", "r");
  ASSERT_NE(pipe, nullptr);
  double of_job = -1, of_program = -1;
  EXPECT_EQ(std::fscanf(pipe, "%lf %lf", &of_job, &of_program), 2);
  pclose(pipe);
  EXPECT_NEAR(of_job, 0, 0.02);  // ticks of 0.01 s
  EXPECT_GE(of_program, 0.28);
}

}  // namespace
}  // namespace convoy
