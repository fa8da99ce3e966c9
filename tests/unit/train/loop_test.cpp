// SPDX-License-Identifier: Apache-2.0
// What the training loop decides from: its state, the keys of its launches, what a sync policy says of itself.
#include <gtest/gtest.h>

#include <set>

#include "engine/engine.hpp"
#include "sync/sync.hpp"
#include "train/loop_state.hpp"

namespace convoy {
namespace {

TEST(LoopState, AdvancesOverTheEndOfAnEpochAndEndsAtTheLastStep) {
  const Timeline timeline({{.begin_epoch = 0, .steps_per_epoch = 2}, {.begin_epoch = 1, .steps_per_epoch = 3}});
  LoopState state;
  state.last_step = 4;
  std::vector<Index> epochs;
  while (!state.ends()) {
    state.working = state.position;
    state.advance(10, timeline);
    if (state.epoch_ended()) epochs.push_back(state.position.step);
  }
  EXPECT_EQ(epochs, std::vector<Index>{2});
  EXPECT_EQ(state.position.epoch, 1);
  EXPECT_EQ(state.position.step_in_epoch, 2);
  EXPECT_EQ(state.position.images, 40);
  EXPECT_FALSE(state.stopped());
}

TEST(LoopState, EndsWhereTheRanksAgreedOnAStop) {
  LoopState state;
  state.last_step = 100;
  EXPECT_FALSE(state.ends());
  state.ends_early = true;
  EXPECT_TRUE(state.ends());
  EXPECT_FALSE(state.stopped()) << "the run is complete";
  state.ends_early = false;
  state.superseded_by = 2;
  EXPECT_TRUE(state.ends());
  EXPECT_TRUE(state.stopped());
}

TEST(ReplayKey, IsAnotherForEveryLaunchOfARun) {
  std::set<std::uint64_t> hashes;
  std::size_t keys = 0;
  for (std::uint64_t phase = 0; phase < 3; ++phase)
    for (const Index samples : {0, 1, 127, 128, 1048576})
      for (int replica = -1; replica < 16; ++replica) {
        const ReplayKey key{.phase = phase, .samples = samples, .replica = replica};
        hashes.insert(key.hash());
        for (std::uint64_t stage = 0; stage < 40; ++stage) hashes.insert(key.of_stage(stage).hash());
        keys += 41;
      }
  EXPECT_EQ(hashes.size(), keys);
  EXPECT_EQ((ReplayKey{.samples = 8, .replica = 1}.hash()), (ReplayKey{.samples = 8, .replica = 1}.hash()));
}

TEST(SyncPolicy, SaysWhatItMeansForTheRestOfTheProgram) {
  const SyncSpec gradients = gradient_sums(4, 2, 1);
  EXPECT_EQ(describe(gradients), "gradients");
  EXPECT_EQ(parameter_sets(gradients, 2), 1);
  EXPECT_EQ(policy_of_checkpoint(local_steps_of_checkpoint(gradients)), "gradients");
  SyncSpec weights{.mode = SyncMode::weights, .local_steps = 3, .replicas = 4, .ranks = 2};
  EXPECT_EQ(describe(weights), "weights every 3 steps");
  EXPECT_EQ(parameter_sets(weights, 2), 3);
  EXPECT_EQ(local_steps_of_checkpoint(weights), 3);
  EXPECT_EQ(policy_of_checkpoint(3), "weights");
  SetLayout layout;
  layout.values = layout.trained = {0, 20};
  EXPECT_EQ(outer_floats(weights, layout), 0);
  weights.outer = {OuterRule::nesterov, 0.7, 0.9};
  EXPECT_EQ(describe(weights), "weights every 3 steps, outer Nesterov momentum 0.9 at learning rate 0.7");
  EXPECT_EQ(outer_floats(weights, layout), 52) << "the momentum begins on 64 bytes";
  weights.outer = {};
  weights.local_steps = 1;
  EXPECT_EQ(describe(weights), "weights every step");
}

}  // namespace
}  // namespace convoy
