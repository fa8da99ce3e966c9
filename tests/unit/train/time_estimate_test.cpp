// SPDX-License-Identifier: Apache-2.0
#include "train/time_estimate.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

WorkAhead ten_epochs() {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 100}}),
          .phases = {{.train_images = 60, .val_images = 600}},
          .first_step = 0,
          .last_step = 1000};
}

TimeEstimate measured(const WorkAhead& work) {
  TimeEstimate estimate(work, {});
  estimate.step_took(50, 1);  // warm-up
  estimate.step_took(20, 2);
  for (Index i = 0; i < 10; ++i) estimate.step_took(i % 2 == 0 ? 0.05 : 0.07, 3 + i);
  return estimate;
}

TEST(TimeEstimate, WaitsForStepsThatCount) {
  TimeEstimate estimate(ten_epochs(), {});
  for (int i = 0; i < 11; ++i) {
    EXPECT_FALSE(estimate.is_ready());
    estimate.step_took(0.4, i + 1);
  }
  estimate.step_took(0.4, 12);
  EXPECT_TRUE(estimate.is_ready());
  TimeEstimate fast(ten_epochs(), {});
  for (int i = 0; i < 45; ++i) {
    EXPECT_FALSE(fast.is_ready()) << i;
    fast.step_took(0.07, i + 1);
  }
  fast.step_took(0.07, 46);
  EXPECT_TRUE(fast.is_ready());
  TimeEstimate slow(ten_epochs(), {});
  for (int i = 0; i < 3; ++i) slow.step_took(11, i + 1);
  EXPECT_TRUE(slow.is_ready());
}

TEST(TimeEstimate, TakesTheFirstStepsWhereThereAreNoOthers) {
  TimeEstimate estimate(ten_epochs(), {});
  estimate.step_took(0.2, 1);
  EXPECT_NEAR(estimate.at(1).step, 0.2, 1e-12);
}

TEST(TimeEstimate, GuessesAValidationUntilOneWasMeasured) {
  const TimeLeft time = measured(ten_epochs()).at(12);
  EXPECT_NEAR(time.step, 0.06, 1e-12);
  EXPECT_NEAR(time.validation, 0.06 / 3 * 10, 1e-12);
  EXPECT_NEAR(time.epoch, 6 + 0.2, 1e-9);
  EXPECT_NEAR(time.left, 988 * 0.06 + 10 * 0.2, 1e-9);
}

TEST(TimeEstimate, TakesWhatWasMeasured) {
  WorkAhead spec = ten_epochs();
  spec.save_interval = 2;
  TimeEstimate estimate = measured(spec);
  estimate.validation_done(3, 600);
  estimate.save_done(1);
  const TimeLeft time = estimate.at(100);
  // 9 more validations, 5 checkpoints (after epochs 2, 4 ... 10) and the last one.
  EXPECT_NEAR(time.left, 900 * 0.06 + 9 * 3 + 5 + 1, 1e-9);
  EXPECT_NEAR(time.epoch, 6 + 3 + 0.5, 1e-9);
}

TEST(TimeEstimate, CountsAValidationAtTheEnd) {
  WorkAhead spec = ten_epochs();
  spec.val_interval = 0;
  TimeEstimate estimate = measured(spec);
  estimate.validation_done(3, 600);
  EXPECT_NEAR(estimate.at(0).left, 1000 * 0.06 + 3, 1e-9);
  EXPECT_NEAR(estimate.at(0).epoch, 6, 1e-9);
}

TEST(TimeEstimate, FollowsStepsThatBecomeSlower) {
  TimeEstimate estimate(ten_epochs(), {});
  for (Index step = 1; step <= 202; ++step) estimate.step_took(0.1, step);
  EXPECT_NEAR(estimate.at(202).step, 0.1, 1e-12);
  // Each further step weighs a 200th.
  estimate.step_took(0.3, 203);
  EXPECT_NEAR(estimate.at(203).step, 0.101, 1e-12);
  for (Index step = 204; step <= 900; ++step) estimate.step_took(0.3, step);
  EXPECT_NEAR(estimate.at(900).step, 0.3, 0.007);
}

/// 4 epochs of 10 steps of small images, 3 of 20 steps of ones that take 4 times the operations, in half the batch.
WorkAhead two_phases() {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 10}, {.begin_epoch = 4, .steps_per_epoch = 20}}),
          .phases = {{.begin_epoch = 0, .train_images = 8, .val_images = 40, .train_work = 3, .val_work = 1},
                     {.begin_epoch = 4, .train_images = 4, .val_images = 40, .train_work = 12, .val_work = 5}},
          .first_step = 0,
          .last_step = 4 * 10 + 3 * 20};
}

TEST(TimeEstimate, GuessesLaterPhasesByTheirOperations) {
  TimeEstimate estimate(two_phases(), {});
  for (int i = 0; i < 5; ++i) estimate.step_took(0.3, i + 1);
  estimate.validation_done(2, 40);
  const TimeLeft time = estimate.at(5);
  EXPECT_EQ(time.steps, 10);
  EXPECT_NEAR(time.epoch, 10 * 0.3 + 2, 1e-9);
  // A step of the second phase: half the images, 4 times the operations; a validation: 5 times the operations.
  ASSERT_EQ(time.later_epochs.size(), 1U);
  EXPECT_NEAR(time.later_epochs[0], 20 * 0.6 + 10, 1e-9);
  EXPECT_NEAR(time.left, 35 * 0.3 + 4 * 2 + 60 * 0.6 + 3 * 10, 1e-9);
  EXPECT_NE(describe(time).find("of later phases 22.0 s"), std::string::npos) << describe(time);
}

TEST(TimeEstimate, TakesThePhasesOwnStepsAndValidations) {
  TimeEstimate estimate(two_phases(), {});
  for (int i = 0; i < 40; ++i) estimate.step_took(0.3, i + 1);
  for (int i = 0; i < 4; ++i) estimate.validation_done(2, 40);
  for (int i = 0; i < 20; ++i) estimate.step_took(i < 2 ? 9 : 0.8, 41 + i);  // the first ones don't count
  estimate.validation_done(7, 40);
  const TimeLeft time = estimate.at(60);
  EXPECT_EQ(time.steps, 20);
  EXPECT_NEAR(time.epoch, 20 * 0.8 + 7, 1e-9);
  EXPECT_NEAR(time.left, 40 * 0.8 + 2 * 7, 1e-9);
  EXPECT_TRUE(time.later_epochs.empty());
}

TEST(TimeEstimate, ReachesNoPhaseBehindTheEnd) {
  WorkAhead spec = two_phases();
  spec.last_step = 30;
  spec.val_interval = 0;
  TimeEstimate estimate(spec, {});
  for (int i = 0; i < 5; ++i) estimate.step_took(0.3, i + 1);
  EXPECT_TRUE(estimate.at(10).later_epochs.empty());
  // The validation at the end is the first phase's: 40 images of 1 by 8 of 3.
  EXPECT_NEAR(estimate.at(10).left, 20 * 0.3 + 0.3 * 40 / 24, 1e-9);
}

/// 4 epochs of 10 steps, 3 of 20, validated after each.
WorkAhead two_small_phases(Index first_step) {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 10}, {.begin_epoch = 4, .steps_per_epoch = 20}}),
          .phases = {{.begin_epoch = 0, .train_images = 8, .val_images = 40},
                     {.begin_epoch = 4, .train_images = 4, .val_images = 40}},
          .first_step = first_step,
          .last_step = 100};
}

/// Steps after which it told something, where each step takes 11 s and each validation 5.
std::vector<Index> told(TimeEstimate& estimate) {
  std::vector<Index> steps;
  for (Index step = estimate.work().first_step + 1; step <= 100; ++step) {
    testing::internal::CaptureStdout();
    estimate.step_took(11, step);
    if (testing::internal::GetCapturedStdout().find("forecast: ") != std::string::npos) steps.push_back(step);
    if (step <= 40 ? step % 10 == 0 : step % 20 == 0) estimate.validation_done(5, 40);
  }
  return steps;
}

TEST(TimeEstimate, TellsAfterTheFirstStepsAndAfterTheFirstEpochOfEveryPhase) {
  TimeEstimate whole(two_small_phases(0), {});
  EXPECT_EQ(told(whole), (std::vector<Index>{3, 11, 61}));
  // From the middle of an epoch the first whole one counts.
  TimeEstimate resumed(two_small_phases(14), {});
  EXPECT_EQ(told(resumed), (std::vector<Index>{17, 31, 61}));
  // From the last epoch of a phase, the next whole epoch is the next phase's.
  TimeEstimate last(two_small_phases(35), {});
  EXPECT_EQ(told(last), (std::vector<Index>{38, 61}));
}

TEST(TimeEstimate, CountsAValidationAtABorderWithThePhaseThatEnds) {
  TimeEstimate estimate(two_small_phases(40), {});
  estimate.validation_done(5, 40);  // of a job that was stopped before it
  estimate.step_took(11, 41);
  estimate.step_took(11, 42);
  estimate.step_took(11, 43);
  // The second phase's is not measured yet: the same images and operations as the first's.
  EXPECT_NEAR(estimate.at(43).validation, 5, 1e-9);
  estimate.validation_done(4, 20);  // of a half of the images
  EXPECT_NEAR(estimate.at(43).validation, 8, 1e-9);
  EXPECT_NEAR(estimate.at(43).left, 57 * 11 + 3 * 8, 1e-9);
}

TEST(JobTime, CountsJobsToCome) {
  EXPECT_EQ(jobs_to_come({.left = 1000}), 0);
  EXPECT_EQ(jobs_to_come({.left = 1000, .limit = 2000, .margin = 100, .elapsed = 800}), 0);
  // 100 s are left here, each further job has 300 - 50 - 20 s.
  EXPECT_EQ(jobs_to_come({.left = 560, .start_up = 20, .limit = 300, .margin = 50, .elapsed = 150}), 2);
  EXPECT_EQ(jobs_to_come({.left = 561, .start_up = 20, .limit = 300, .margin = 50, .elapsed = 150}), 3);
  EXPECT_EQ(jobs_to_come({.left = 10, .start_up = 20, .limit = 60, .margin = 50, .elapsed = 20}), -1);
}

TEST(JobTime, SaysWhatToAskFor) {
  EXPECT_EQ(time_to_ask_for(3600), "01:06:00");
  EXPECT_EQ(time_to_ask_for(1), "00:01:00");
  EXPECT_EQ(time_to_ask_for(100 * 3600), "110:00:00");
  EXPECT_NE(describe(JobTime{.left = 3600}).find("ask for 01:06:00"), std::string::npos);
  EXPECT_NE(describe(JobTime{.left = 100, .limit = 1000}).find("is enough"), std::string::npos);
  const std::string text = describe(JobTime{.left = 5000, .limit = 1000, .margin = 100, .elapsed = 100, .epoch = 2000});
  EXPECT_NE(text.find("5 more jobs"), std::string::npos) << text;
  EXPECT_NE(text.find("not one epoch fits"), std::string::npos) << text;
}

}  // namespace
}  // namespace convoy
