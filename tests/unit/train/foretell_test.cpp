// SPDX-License-Identifier: Apache-2.0
#include "train/foretell.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

/// 4 epochs of 10 steps, 3 of 20, validated after each.
ForecastSpec two_phases(Index first_step) {
  return {.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = 10}, {.begin_epoch = 4, .steps_per_epoch = 20}}),
          .phases = {{.begin_epoch = 0, .train_images = 8, .val_images = 40},
                     {.begin_epoch = 4, .train_images = 4, .val_images = 40}},
          .first_step = first_step,
          .last_step = 100};
}

/// Steps after which it told something, where each step takes 11 s and each validation 5.
std::vector<Index> told(Foreteller& foreteller) {
  std::vector<Index> steps;
  for (Index step = foreteller.spec().first_step + 1; step <= 100; ++step) {
    testing::internal::CaptureStdout();
    foreteller.step_done(11, step);
    if (testing::internal::GetCapturedStdout().find("forecast: ") != std::string::npos) steps.push_back(step);
    if (step <= 40 ? step % 10 == 0 : step % 20 == 0) foreteller.validation_done(5, 40);
  }
  return steps;
}

TEST(Foreteller, TellsAfterTheFirstStepsAndAfterTheFirstEpochOfEveryPhase) {
  Foreteller whole(two_phases(0), {});
  EXPECT_EQ(told(whole), (std::vector<Index>{3, 11, 61}));
  // From the middle of an epoch the first whole one counts.
  Foreteller resumed(two_phases(14), {});
  EXPECT_EQ(told(resumed), (std::vector<Index>{17, 31, 61}));
  // From the last epoch of a phase, the next whole epoch is the next phase's.
  Foreteller last(two_phases(35), {});
  EXPECT_EQ(told(last), (std::vector<Index>{38, 61}));
}

TEST(Foreteller, CountsAValidationAtABorderWithThePhaseThatEnds) {
  Foreteller foreteller(two_phases(40), {});
  foreteller.validation_done(5, 40);  // of a job that was stopped before it
  foreteller.step_done(11, 41);
  foreteller.step_done(11, 42);
  foreteller.step_done(11, 43);
  // The second phase's is not measured yet: the same images and operations as the first's.
  EXPECT_NEAR(foreteller.estimate(43).validation, 5, 1e-9);
  foreteller.validation_done(4, 20);  // of a half of the images
  EXPECT_NEAR(foreteller.estimate(43).validation, 8, 1e-9);
  EXPECT_NEAR(foreteller.estimate(43).left, 57 * 11 + 3 * 8, 1e-9);
}

}  // namespace
}  // namespace convoy
