// SPDX-License-Identifier: Apache-2.0
// Training with blocks that run again, compared with training that keeps everything: on any backend.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "cuda/step/training.hpp"

namespace convoy::cuda {

using MakeBackend = std::function<std::unique_ptr<Backend>()>;

inline void expect_equal_bits(const TrainingResult& plain, const TrainingResult& again, const std::string& name) {
  EXPECT_EQ(plain.first_gradients, again.first_gradients) << name;
  EXPECT_EQ(plain.gradients, again.gradients) << name;
  EXPECT_EQ(plain.set, again.set) << name;  // running statistics are in it
  EXPECT_EQ(plain.logits, again.logits) << name;
  EXPECT_EQ(plain.choices, again.choices) << name;
  EXPECT_EQ(plain.counters.samples, again.counters.samples) << name;
}

/// Recompute::automatic with limits between what all blocks and what none take: the same bits, within the limit.
inline void expect_same_bits_with_some_blocks(const MakeBackend& make, TrainingSpec spec, const std::string& name) {
  const TrainingResult plain = train(*make(), spec);
  spec.recompute = Recompute::all;
  const Index least = train(*make(), spec).arena_floats, most = plain.arena_floats;
  ASSERT_LT(least, most) << name;
  spec.recompute = Recompute::automatic;
  int partly = 0;
  for (const Index quarters : {1, 2, 3}) {
    spec.arena_limit = least + (most - least) * quarters / 4;
    const TrainingResult some = train(*make(), spec);
    EXPECT_LE(some.arena_floats, spec.arena_limit) << name;
    EXPECT_GT(some.recomputation.blocks, 0) << name;
    if (some.recomputation.blocks < some.recomputation.found) ++partly;
    expect_equal_bits(plain, some, name);
  }
  EXPECT_GT(partly, 0) << name << ": all blocks or none, at every limit";
}

}  // namespace convoy::cuda
