// SPDX-License-Identifier: Apache-2.0
#include "train/forecast.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

ForecastSpec ten_epochs() {
  return {.steps_per_epoch = 100, .first_step = 0, .last_step = 1000, .train_images = 60, .val_images = 600};
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
  EXPECT_NEAR(estimate.epoch, 6 + 3, 1e-9);
}

TEST(Forecast, CountsAValidationAtTheEnd) {
  ForecastSpec spec = ten_epochs();
  spec.val_interval = 0;
  Forecast forecast = measured(spec);
  forecast.add_validation(3);
  EXPECT_NEAR(forecast.estimate(0).left, 1000 * 0.06 + 3, 1e-9);
  EXPECT_NEAR(forecast.estimate(0).epoch, 6, 1e-9);
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
