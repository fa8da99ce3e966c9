// SPDX-License-Identifier: Apache-2.0
#include "train/forecast.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

ForecastSpec ten_epochs() {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 100}}),
          .phases = {{.train_images = 60, .val_images = 600}},
          .first_step = 0,
          .last_step = 1000};
}

Forecast measured(const ForecastSpec& spec) {
  Forecast forecast(spec);
  forecast.add_step(50);  // warm-up
  forecast.add_step(20);
  for (int i = 0; i < 10; ++i) forecast.add_step(i % 2 == 0 ? 0.05 : 0.07);
  return forecast;
}

TEST(Forecast, WaitsForStepsThatCount) {
  Forecast forecast(ten_epochs());
  for (int i = 0; i < 11; ++i) {
    EXPECT_FALSE(forecast.is_ready());
    forecast.add_step(0.4);
  }
  forecast.add_step(0.4);
  EXPECT_TRUE(forecast.is_ready());
  Forecast fast(ten_epochs());
  for (int i = 0; i < 45; ++i) {
    EXPECT_FALSE(fast.is_ready()) << i;
    fast.add_step(0.07);
  }
  fast.add_step(0.07);
  EXPECT_TRUE(fast.is_ready());
  Forecast slow(ten_epochs());
  for (int i = 0; i < 3; ++i) slow.add_step(11);
  EXPECT_TRUE(slow.is_ready());
}

TEST(Forecast, TakesTheFirstStepsWhereThereAreNoOthers) {
  Forecast forecast(ten_epochs());
  forecast.add_step(0.2);
  EXPECT_NEAR(forecast.estimate(1).step, 0.2, 1e-12);
}

TEST(Forecast, GuessesAValidationUntilOneWasMeasured) {
  const Estimate estimate = measured(ten_epochs()).estimate(12);
  EXPECT_NEAR(estimate.step, 0.06, 1e-12);
  EXPECT_NEAR(estimate.validation, 0.06 / 3 * 10, 1e-12);
  EXPECT_NEAR(estimate.epoch, 6 + 0.2, 1e-9);
  EXPECT_NEAR(estimate.left, 988 * 0.06 + 10 * 0.2, 1e-9);
}

TEST(Forecast, TakesWhatWasMeasured) {
  ForecastSpec spec = ten_epochs();
  spec.save_interval = 2;
  Forecast forecast = measured(spec);
  forecast.add_validation(3);
  forecast.add_save(1);
  const Estimate estimate = forecast.estimate(100);
  // 9 more validations, 5 checkpoints (after epochs 2, 4 ... 10) and the last one.
  EXPECT_NEAR(estimate.left, 900 * 0.06 + 9 * 3 + 5 + 1, 1e-9);
  EXPECT_NEAR(estimate.epoch, 6 + 3 + 0.5, 1e-9);
}

TEST(Forecast, CountsAValidationAtTheEnd) {
  ForecastSpec spec = ten_epochs();
  spec.val_interval = 0;
  Forecast forecast = measured(spec);
  forecast.add_validation(3);
  EXPECT_NEAR(forecast.estimate(0).left, 1000 * 0.06 + 3, 1e-9);
  EXPECT_NEAR(forecast.estimate(0).epoch, 6, 1e-9);
}

/// 4 epochs of 10 steps of small images, 3 of 20 steps of ones that take 4 times the operations, in half the batch.
ForecastSpec two_phases() {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 10}, {.begin_epoch = 4, .steps_per_epoch = 20}}),
          .phases = {{.begin_epoch = 0, .train_images = 8, .val_images = 40, .train_work = 3, .val_work = 1},
                     {.begin_epoch = 4, .train_images = 4, .val_images = 40, .train_work = 12, .val_work = 5}},
          .first_step = 0,
          .last_step = 4 * 10 + 3 * 20};
}

TEST(Forecast, GuessesLaterPhasesByTheirOperations) {
  Forecast forecast(two_phases());
  for (int i = 0; i < 5; ++i) forecast.add_step(0.3, 0);
  forecast.add_validation(2, 0);
  const Estimate estimate = forecast.estimate(5);
  EXPECT_EQ(estimate.steps, 10);
  EXPECT_NEAR(estimate.epoch, 10 * 0.3 + 2, 1e-9);
  // A step of the second phase: half the images, 4 times the operations; a validation: 5 times the operations.
  ASSERT_EQ(estimate.later_epochs.size(), 1U);
  EXPECT_NEAR(estimate.later_epochs[0], 20 * 0.6 + 10, 1e-9);
  EXPECT_NEAR(estimate.left, 35 * 0.3 + 4 * 2 + 60 * 0.6 + 3 * 10, 1e-9);
  EXPECT_NE(describe(estimate).find("of later phases 22.0 s"), std::string::npos) << describe(estimate);
}

TEST(Forecast, TakesThePhasesOwnStepsAndValidations) {
  Forecast forecast(two_phases());
  for (int i = 0; i < 40; ++i) forecast.add_step(0.3, 0);
  for (int i = 0; i < 4; ++i) forecast.add_validation(2, 0);
  for (int i = 0; i < 20; ++i) forecast.add_step(i < 2 ? 9 : 0.8, 1);  // the first ones don't count
  forecast.add_validation(7, 1);
  const Estimate estimate = forecast.estimate(60);
  EXPECT_EQ(estimate.steps, 20);
  EXPECT_NEAR(estimate.epoch, 20 * 0.8 + 7, 1e-9);
  EXPECT_NEAR(estimate.left, 40 * 0.8 + 2 * 7, 1e-9);
  EXPECT_TRUE(estimate.later_epochs.empty());
}

TEST(Forecast, ReachesNoPhaseBehindTheEnd) {
  ForecastSpec spec = two_phases();
  spec.last_step = 30;
  spec.val_interval = 0;
  Forecast forecast(spec);
  for (int i = 0; i < 5; ++i) forecast.add_step(0.3, 0);
  EXPECT_TRUE(forecast.estimate(10).later_epochs.empty());
  // The validation at the end is the first phase's: 40 images of 1 by 8 of 3.
  EXPECT_NEAR(forecast.estimate(10).left, 20 * 0.3 + 0.3 * 40 / 24, 1e-9);
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
