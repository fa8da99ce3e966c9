// SPDX-License-Identifier: Apache-2.0
// Periods and groups of averages that do nothing, and options that do nothing together.
#include "train/policy_warnings.hpp"

#include <gtest/gtest.h>

#include "network/models.hpp"

namespace convoy {
namespace {

/// Four replicas on four ranks, 63 steps, on these hosts. The warnings, one after the other.
std::string warned(const SyncSpec& sync, const std::vector<std::string>& hosts = {"a", "a", "b", "b"}) {
  JobShape job;
  job.ranks = job.replicas = 4;
  job.sync = sync;
  job.sync.ranks = job.sync.replicas = 4;
  job.total_steps = 63;
  std::string text;
  for (const std::string& one : policy_warnings(job, hosts)) text += one;
  return text;
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(PolicyWarnings, OfAPeriodThatNeverEnds) {
  EXPECT_EQ(warned({.local_steps = 8}), "");
  EXPECT_EQ(warned({.local_steps = 63}), "") << "an average at the end alone";
  EXPECT_TRUE(says(warned({.local_steps = 64}), "no average reaches the replicas before its end"));
  EXPECT_EQ(warned({.local_steps = 31, .overlap = true}), "") << "at step 62";
  EXPECT_TRUE(says(warned({.local_steps = 32, .overlap = true}), "no average reaches"));
  EXPECT_EQ(warned({.local_steps = 8, .local_start = 55}), "") << "at step 56";
  EXPECT_TRUE(says(warned({.local_steps = 8, .local_start = 56}), "after step 56 (--local-sgd-start)"));
  EXPECT_TRUE(says(warned({.local_steps = 8, .local_start = 63}), "--local-sgd-start 63 is not reached"));
  EXPECT_EQ(warned({.mode = SyncMode::gradients, .local_steps = 1000}), "");
}

TEST(PolicyWarnings, OfGroups) {
  const auto groups = [](int replicas) {
    return SyncSpec{.local_steps = 4, .group = {.steps = 2, .replicas = replicas}};
  };
  EXPECT_EQ(warned(groups(2)), "");
  EXPECT_TRUE(says(warned(groups(1)), "--node-steps 2 has no effect"));
  EXPECT_TRUE(says(warned(groups(4)), "--local-steps 4 has no effect"));
  EXPECT_TRUE(
      says(warned(groups(2), {"a", "b", "c", "d"}), "replicas 0 to 1 are a group (--node-replicas 2) and lie on a, b"));
  EXPECT_TRUE(
      says(warned(groups(2), {"a", "a", "b", "c"}), "replicas 2 to 3 are a group (--node-replicas 2) and lie on b, c"));
}

/// What is said of options of resnet20 at a peak learning rate of 0.1.
std::string warned(const TrainConfig& config) {
  const Plan plan = make_plan(build_graph({.model = "resnet20"}),
                              {.weight_decay = static_cast<float>(config.optimiser.weight_decay),
                               .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
                               .frozen = config.frozen});
  std::string text;
  for (const std::string& one : option_warnings(config, 0.1, plan)) text += one;
  return text;
}

TEST(OptionWarnings, OfEndsAboveThePeak) {
  TrainConfig config;
  config.optimiser.schedule.decay = Decay::cosine;
  config.optimiser.schedule.warmup_epochs = 1;
  config.optimiser.schedule.warmup_rate = config.optimiser.schedule.min_rate = 0.1;
  EXPECT_EQ(warned(config), "");
  config.optimiser.schedule.min_rate = 0.2;
  EXPECT_TRUE(says(warned(config), "--min-lr 0.2 is above the peak learning rate of 0.1"));
  config.optimiser.schedule.min_rate = 0;
  config.optimiser.schedule.warmup_rate = 0.2;
  EXPECT_TRUE(says(warned(config), "--warmup-lr 0.2 is above the peak learning rate of 0.1"));
  config.optimiser.schedule.decay = Decay::onecycle;
  EXPECT_EQ(warned(config), "");
}

TEST(OptionWarnings, OfMilestonesInTheWarmUp) {
  TrainConfig config;
  config.optimiser.schedule.decay = Decay::multistep;
  config.optimiser.schedule.step_epochs = {30, 60};
  config.optimiser.schedule.warmup_epochs = 5;
  EXPECT_EQ(warned(config), "");
  config.optimiser.schedule.step_epochs = {3, 60};
  EXPECT_TRUE(says(warned(config), "--lr-step-epochs 3 lies within the warm-up (--warmup-epochs 5)"));
  EXPECT_TRUE(says(warned(config), "add the warm-up to each of them"));
  config.optimiser.schedule.decay = Decay::cosine;
  EXPECT_EQ(warned(config), "");
}

TEST(OptionWarnings, OfValidationsThatAreNotThere) {
  TrainConfig config;
  config.patience = 3;
  EXPECT_EQ(warned(config), "");
  config.val_interval = 0;
  EXPECT_TRUE(says(warned(config), "--patience 3 counts validations"));
  config.patience = 0;
  config.optimiser.schedule.decay = Decay::plateau;
  EXPECT_TRUE(says(warned(config), "--lr-schedule plateau follows the validations"));
}

TEST(OptionWarnings, OfRareClassesAndFrozenParameters) {
  TrainConfig config;
  config.class_weights.automatic = true;
  EXPECT_EQ(warned(config), "");
  config.data.balance = Balance::classes;
  EXPECT_TRUE(says(warned(config), "count rare classes twice"));
  config = {};
  config.rate_multipliers = {{.pattern = "conv1", .factor = 2}};
  EXPECT_EQ(warned(config), "");
  config.frozen = {"conv1"};
  EXPECT_TRUE(says(warned(config), "--lr-mult 'conv1' has no effect"));
}

TEST(OptionWarnings, OfDecaysThatAreMultipliedInVain) {
  TrainConfig config;
  config.decay_multipliers = {{"conv1", 0.5}, {"bn1", 0}};
  EXPECT_EQ(warned(config), "");
  config.decay_multipliers = {{"*.bn?", 2}};
  EXPECT_TRUE(says(warned(config),
                   "--decay-mult '*.bn?' has no effect: the parameters that it matches have a weight decay of 0"));
  config.optimiser.norm_weight_decay = 1e-4;
  EXPECT_EQ(warned(config), "");
  config.frozen = {"layer*"};
  EXPECT_TRUE(
      says(warned(config), "--decay-mult '*.bn?' has no effect: none of the parameters that it matches trains"));
}

}  // namespace
}  // namespace convoy
