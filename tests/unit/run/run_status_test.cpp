// SPDX-License-Identifier: Apache-2.0
#include "run/run_status.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

using Job = RunObservations::Job;

RunState running_state() {
  RunState state{.run = "r", .attempt = 2, .scheduler = "slurm", .job = "17", .host = "n0", .pid = 5, .ranks = 4};
  state.stage = RunStage::train;
  state.epoch = 2;
  state.step = 150;
  state.steps = 1000;
  state.start_step = 100;
  state.checkpoint = "checkpoints/epoch-0001.h5";
  state.checkpoint_step = 100;
  state.updated = 1000;
  return state;
}

RunState ended_state(Result result, Exit exit) {
  RunState state = running_state();
  state.result = result;
  state.exit = exit;
  state.message = "because";
  state.rank = 3;
  return state;
}

TEST(RunStatusTest, FreshStateRuns) {
  const RunState state = running_state();
  EXPECT_EQ(decide(state, {.now = 1010}).status, RunStatus::running);
  EXPECT_EQ(decide(state, {.now = 1010, .job = Job::runs}).status, RunStatus::running);
  EXPECT_EQ(decide(state, {.now = 1010}).exit, 0);
}

TEST(RunStatusTest, WrongArithmeticGoesOnOnlyWithoutItsHost) {
  const RunState wrong = ended_state(Result::failed, Exit::arithmetic);
  EXPECT_EQ(decide_requeue(&wrong, {.excluded = "n1"}, 7).exit, 75);
  EXPECT_NE(decide_requeue(&wrong, {.excluded = "n1"}, 7).text.find("the next job leaves out n1"), std::string::npos);
  EXPECT_EQ(decide_requeue(&wrong, {}, 7).exit, 7) << "nobody knows which host is wrong";
  EXPECT_EQ(decide_requeue(&wrong, {.excluded = "n1", .lost_attempts = 3}, 7).exit, 7) << "again and again";
}

TEST(RunStatusTest, SilentRanksHang) {
  const RunState state = running_state();
  const RunObservations seen{.now = 1010, .job = Job::runs, .silent = "rank 2 on n2"};
  EXPECT_EQ(decide(state, seen).status, RunStatus::hanging);
  EXPECT_EQ(decide(state, seen).exit, 5);
}

TEST(RunStatusTest, StaleStateIsLostUnlessSomebodyKnowsBetter) {
  const RunState state = running_state();
  EXPECT_EQ(decide(state, {.now = 1100}).status, RunStatus::lost);
  EXPECT_EQ(decide(state, {.now = 1100, .job = Job::gone}).status, RunStatus::lost);
  EXPECT_EQ(decide(state, {.now = 1100, .job = Job::waits}).status, RunStatus::lost);
  EXPECT_EQ(decide(state, {.now = 1100, .job = Job::runs}).status, RunStatus::hanging);
  EXPECT_EQ(decide(state, {.now = 1100, .process = Presence::lives}).status, RunStatus::hanging);
  EXPECT_EQ(decide(state, {.now = 1100}).exit, 75);
  EXPECT_EQ(decide(state, {.now = 900}).status, RunStatus::lost) << "a date in the future is no sign of life";
}

TEST(RunStatusTest, GoneProcessOrJobIsLostAtOnce) {
  const RunState state = running_state();
  EXPECT_EQ(decide(state, {.now = 1001, .process = Presence::gone}).status, RunStatus::lost);
  EXPECT_EQ(decide(state, {.now = 1001, .job = Job::gone}).status, RunStatus::lost);
}

TEST(RunStatusTest, EndsAreTakenAtTheirWord) {
  EXPECT_EQ(decide(ended_state(Result::finished, Exit::ok), {.now = 9999}).status, RunStatus::finished);
  EXPECT_EQ(decide(ended_state(Result::stopped, Exit::stopped), {.now = 9999}).status, RunStatus::stopped);
  const RunState failed = ended_state(Result::failed, Exit::data);
  EXPECT_EQ(decide(failed, {.now = 9999}).status, RunStatus::failed);
  EXPECT_EQ(decide(failed, {.now = 9999}).exit, 3);
}

TEST(RunStatusTest, AJobThatAnOptionEndedIsNeitherFinishedNorSubmittedAgain) {
  RunState limited = ended_state(Result::limited, Exit::ok);
  limited.stop = "--max-steps 50";
  EXPECT_EQ(decide(limited, {.now = 9999}).status, RunStatus::stopped);
  EXPECT_EQ(decide(limited, {.now = 9999}).exit, 0);
  EXPECT_EQ(decide(limited, {.now = 9999}).text,
            "stopped by --max-steps 50 at step 150 of 1000; continue with --resume auto");
  for (const int code : {0, 1, 75, 137}) {
    const RequeueDecision next = decide_requeue(&limited, {}, code);
    EXPECT_EQ(next.exit, 0) << code;
    EXPECT_NE(next.text.find("stopped by --max-steps 50 at step 150 of 1000"), std::string::npos) << next.text;
  }
}

TEST(RunStatusTest, WhatIsKnownOfAKilledRunIsSaid) {
  RunState state = running_state();
  EXPECT_EQ(decide(state, {.now = 1100}).text,
            "ended without a record of its end, last update 0:01:40 ago; submit it again to continue");
  state.stop = "SIGTERM";
  EXPECT_EQ(
      decide(state, {.now = 1100, .process = Presence::gone, .launcher_code = 137}).text,
      "ended without a record of its end (it had been asked to stop (SIGTERM); its launcher ended with code 137 (128 + "
      "signal 9); process 5 of rank 0 is gone), last update 0:01:40 ago; submit it again to continue");
  state.stop.clear();
  EXPECT_NE(decide(state, {.now = 1100, .job = Job::gone, .launcher_code = 1})
                .text.find("(its launcher ended with code 1; the scheduler no longer has job 17)"),
            std::string::npos);
}

TEST(RequeueDecisionTest, KilledRunsAreSubmittedAgain) {
  const RunState state = running_state();
  for (const int code : {1, 75, 129, 137, 138, 143, 205, 254}) {
    const RequeueDecision next = decide_requeue(&state, {}, code);
    EXPECT_EQ(next.exit, 75) << code << ": " << next.text;
    EXPECT_NE(next.text.find("100 of 1000"), std::string::npos) << next.text;
  }
}

TEST(RequeueDecisionTest, OtherCodesOfARunThatSaysNothingStop) {
  const RunState state = running_state();
  for (const int code : {2, 3, 4, 5, 6, 134, 139}) EXPECT_EQ(decide_requeue(&state, {}, code).exit, code);
}

TEST(RequeueDecisionTest, StateCountsForMoreThanTheCode) {
  const RunState finished = ended_state(Result::finished, Exit::ok), failed = ended_state(Result::failed, Exit::data),
                 stopped = ended_state(Result::stopped, Exit::stopped),
                 superseded = ended_state(Result::superseded, Exit::superseded);
  for (const int code : {0, 1, 75, 137, 205}) {
    EXPECT_EQ(decide_requeue(&finished, {}, code).exit, 0);
    EXPECT_EQ(decide_requeue(&failed, {}, code).exit, 3);
    EXPECT_EQ(decide_requeue(&stopped, {}, code).exit, 75);
    EXPECT_EQ(decide_requeue(&superseded, {}, code).exit, 6);
  }
  EXPECT_NE(decide_requeue(&failed, {}, 3).text.find("rank 3 failed with code 3: because"), std::string::npos);
}

TEST(RequeueDecisionTest, BrokenCommunicationOfALostHostGoesOn) {
  const RunState failed = ended_state(Result::failed, Exit::communication);
  EXPECT_EQ(decide_requeue(&failed, {}, 5).exit, 5);
  EXPECT_EQ(decide_requeue(&failed, {.silent = "rank 1 on n1: frozen"}, 5).exit, 5);
  EXPECT_NE(decide_requeue(&failed, {.silent = "rank 1 on n1: frozen"}, 5).text.find("rank 1 on n1"),
            std::string::npos);
  EXPECT_EQ(decide_requeue(&failed, {.lost_hosts = "n1"}, 5).exit, 75);
  for (const int code : {137, 205, 254}) EXPECT_EQ(decide_requeue(&failed, {}, code).exit, 75) << code;
}

TEST(RequeueDecisionTest, AttemptsWithoutProgressEnd) {
  const RunState state = running_state();
  EXPECT_EQ(decide_requeue(&state, {.lost_attempts = 2}, 137).exit, 75);
  const RequeueDecision next = decide_requeue(&state, {.lost_attempts = 3}, 137);
  EXPECT_EQ(next.exit, 137);
  EXPECT_NE(next.text.find("3 attempts"), std::string::npos);
}

TEST(RequeueDecisionTest, TooShortATimeIsNotAskedForAgain) {
  RunState state = ended_state(Result::stopped, Exit::stopped);
  state.stop = "time limit";
  EXPECT_EQ(decide_requeue(&state, {}, 75).exit, 75);
  state.step = state.start_step;
  EXPECT_EQ(decide_requeue(&state, {}, 75).exit, 2);
  state.stop = "SIGUSR1";
  EXPECT_EQ(decide_requeue(&state, {}, 75).exit, 75);
}

TEST(RequeueDecisionTest, SignalsAheadOfTheEndBeforeTheFirstStepEnd) {
  RunState state = ended_state(Result::stopped, Exit::stopped);
  state.stop = "SIGUSR1";
  EXPECT_EQ(decide_requeue(&state, {.lost_attempts = 3}, 75).exit, 75);  // it made steps
  state.step = state.start_step;
  EXPECT_EQ(decide_requeue(&state, {.lost_attempts = 2}, 75).exit, 75);
  const RequeueDecision next = decide_requeue(&state, {.lost_attempts = 3}, 75);
  EXPECT_EQ(next.exit, 2);
  EXPECT_NE(next.text.find("time of 3 jobs"), std::string::npos) << next.text;
}

TEST(RequeueDecisionTest, LaunchersThatFailAreTriedThreeTimes) {
  const RunState failed_before = ended_state(Result::failed, Exit::communication);
  EXPECT_EQ(decide_requeue(&failed_before, {.failed_launches = 1}, 137).exit, 75);
  EXPECT_EQ(decide_requeue(&failed_before, {.failed_launches = 2}, 205).exit, 75);
  EXPECT_EQ(decide_requeue(&failed_before, {.failed_launches = 3}, 137).exit, 137);
  EXPECT_EQ(decide_requeue(&failed_before, {.failed_launches = 1}, 2).exit, 2);
  EXPECT_EQ(decide_requeue(&failed_before, {.failed_launches = 1}, 1).exit, 1);
  EXPECT_NE(decide_requeue(&failed_before, {.failed_launches = 1}, 2).text.find("before the program began"),
            std::string::npos);
}

TEST(RequeueDecisionTest, WithoutAStateTheCodeCounts) {
  EXPECT_EQ(decide_requeue(nullptr, {}, 2).exit, 2);
  EXPECT_EQ(decide_requeue(nullptr, {}, 1).exit, 1);
  EXPECT_EQ(decide_requeue(nullptr, {}, 205).exit, 75);
  EXPECT_EQ(decide_requeue(nullptr, {.restarts = 3}, 205).exit, 205);
}

TEST(SubmissionDecisionTest, AJobSubmitsItselfUpToALimit) {
  const SubmissionDecision first = decide_submission({.resubmissions = 2});
  EXPECT_TRUE(first.again);
  EXPECT_EQ(first.text, "submits itself again: 1 of at most 2");
  EXPECT_TRUE(decide_submission({.resubmitted = 1, .resubmissions = 2}).again);
  const SubmissionDecision last = decide_submission({.resubmitted = 2, .resubmissions = 2});
  EXPECT_FALSE(last.again);
  EXPECT_NE(last.text.find("submitted itself 2 times, the limit"), std::string::npos) << last.text;
}

TEST(SubmissionDecisionTest, AJobThatSomebodyEndedDoesNotSubmitItself) {
  EXPECT_FALSE(decide_submission({.told_to_end = 1000, .resubmissions = 2}).again) << "nobody knows its end";
  EXPECT_FALSE(decide_submission({.end = 5000, .told_to_end = 1000, .resubmissions = 2}).again);
  EXPECT_TRUE(decide_submission({.end = 5000, .told_to_end = 4950, .resubmissions = 2}).again) << "its time was up";
}

TEST(SubmissionDecisionTest, PbsEndsNoJobAheadOfItsTime) {
  const double notice = notice_of("pbs");
  EXPECT_FALSE(decide_submission({.end = 5000, .told_to_end = 4990, .notice = notice, .resubmissions = 2}).again);
  EXPECT_TRUE(decide_submission({.end = 5000, .told_to_end = 5000, .notice = notice, .resubmissions = 2}).again);
  EXPECT_EQ(notice_of("slurm"), 60);
}

TEST(SubmissionDecisionTest, WhatIsNotKnownIsNotClaimed) {
  const auto decision = decide_submission({.told_to_end = 1000, .resubmissions = 2});
  EXPECT_EQ(decision.text.find("before its time was up"), std::string::npos) << decision.text;
}

TEST(SubmissionDecisionTest, JobsThatComeToNothingEnd) {
  EXPECT_TRUE(decide_submission({.jobs_in_vain = 2, .resubmissions = 9}).again);
  EXPECT_FALSE(decide_submission({.jobs_in_vain = 3, .resubmissions = 9}).again);
  EXPECT_TRUE(decide_submission({.keeps_nothing = true, .resubmitted = 1, .resubmissions = 9}).again);
  EXPECT_FALSE(decide_submission({.keeps_nothing = true, .resubmitted = 2, .resubmissions = 9}).again);
}

TEST(SubmissionDecisionTest, AJobThatKeepsNothingDoesNotTryAgainInTheSameTime) {
  EXPECT_FALSE(decide_submission({.end = 5000, .now = 4990, .keeps_nothing = true, .resubmissions = 2}).again);
  EXPECT_TRUE(decide_submission({.end = 5000, .now = 3000, .keeps_nothing = true, .resubmissions = 2}).again);
  EXPECT_TRUE(decide_submission({.end = 5000, .now = 4990, .resubmissions = 2}).again);
}

TEST(SubmissionDecisionTest, WithoutARunDirectoryTheCodeCounts) {
  for (const int code : {129, 130, 137, 138, 143, 205}) EXPECT_EQ(exit_without_run(code, {}), 75) << code;
  for (const int code : {0, 1, 2, 3, 75, 139, 254}) EXPECT_EQ(exit_without_run(code, {}), code);
  EXPECT_EQ(exit_without_run(1, {.told_to_end = 1000}), 75) << "mpirun that was told to end";
}

}  // namespace
}  // namespace convoy
