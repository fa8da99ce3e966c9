// SPDX-License-Identifier: Apache-2.0
// Which blocks run again, and memory with gaps.
#include "backend/lowering/recompute.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "backend/factory.hpp"
#include "core/random.hpp"
#include "network/models.hpp"

namespace convoy::lowering {
namespace {

std::set<int> steps_of(const Lifetime& lifetime) {
  std::set<int> steps;
  for (int k = lifetime.first; k <= lifetime.last; ++k)
    if (k < lifetime.unused_from || k >= lifetime.resumes) steps.insert(k);
  return steps;
}

TEST(Gaps, BlocksMeetWhereAStepNeedsBoth) {
  Random random(1, Stream::synthetic);
  const auto below = [&](int n) { return static_cast<int>(random.uniform() * static_cast<float>(n)) % n; };
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 60; ++i) {
    Lifetime lifetime{.bytes = 64 * (1 + below(9))};
    const int first = below(20);
    lifetime.touch(first);
    lifetime.touch(first + below(4));
    if (i % 2 == 0) lifetime.resume(lifetime.last + 1 + below(12));
    if (i % 3 == 0) lifetime.touch(lifetime.last + below(4));
    lifetimes.push_back(lifetime);
  }
  const Placement placement = place(lifetimes);
  int apart = 0;
  for (std::size_t a = 0; a < lifetimes.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::set<int> both;
      const std::set<int> of_a = steps_of(lifetimes[a]), of_b = steps_of(lifetimes[b]);
      std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::inserter(both, both.end()));
      EXPECT_EQ(lifetimes[a].meets(lifetimes[b]), !both.empty()) << a << ' ' << b;
      const Index begin_a = placement.offsets[a], begin_b = placement.offsets[b];
      const bool overlap = begin_a < begin_b + lifetimes[b].bytes && begin_b < begin_a + lifetimes[a].bytes;
      EXPECT_FALSE(overlap && !both.empty()) << a << ' ' << b;
      apart += overlap ? 1 : 0;
    }
  }
  EXPECT_GT(apart, 0);  // memory is shared at all
}

/// Tensor i is made by forward step i from i - 1, and backward reads it, the last one first.
struct Chain {
  std::vector<KeptTensor> tensors;
  std::vector<TouchingStep> steps;

  explicit Chain(const std::vector<Index>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      tensors.push_back({.bytes = bytes[i]});
      TouchingStep step{.writes = {static_cast<int>(i)}, .once = i == 0, .cost = 1};
      if (i > 0) step.reads = {static_cast<int>(i) - 1};
      steps.push_back(step);
    }
    for (std::size_t i = bytes.size(); i-- > 0;) steps.push_back({.reads = {static_cast<int>(i)}, .backward = true});
  }
};

/// The most bytes that are kept at once, the image aside, when a block's backward begins or, behind the last block, the
/// whole one: what isn't made again so far, and what lies inside.
Index peak_of(const Chain& chain, const std::vector<RepeatedBlock>& blocks) {
  std::vector<bool> inside(chain.tensors.size(), false);
  for (const RepeatedBlock& block : blocks)
    for (const int tensor : block.tensors) inside[static_cast<std::size_t>(tensor)] = true;
  Index peak = 0, kept = 0;
  auto block = blocks.begin();
  for (std::size_t t = 1; t < inside.size(); ++t) {
    if (!inside[t]) kept += chain.tensors[t].bytes;
    const bool leaves = block != blocks.end() && static_cast<int>(t) == block->tensors.back() + 1;
    if (leaves) peak = std::max(peak, kept + (block++)->bytes);
  }
  return std::max(peak, kept);
}

/// The least of it over all ways to cut.
Index least_peak(const std::vector<Index>& bytes) {
  const std::size_t n = bytes.size();
  Index least = std::numeric_limits<Index>::max();
  for (unsigned cuts = 0; cuts < 1U << (n - 1); ++cuts) {  // bit i: a boundary in front of step i + 1
    Index peak = 0, kept = 0, inner = 0;
    for (std::size_t t = 1; t < n; ++t) {
      const bool leaves = t + 1 < n && (cuts >> t & 1U) != 0;
      (leaves ? kept : inner) += bytes[t];
      if (!leaves) continue;
      peak = std::max(peak, kept + inner);
      inner = 0;
    }
    least = std::min(least, std::max(peak, kept + inner));
  }
  return least;
}

TEST(Blocks, NoOtherCutOfAChainNeedsLess) {
  Random random(2, Stream::synthetic);
  for (int draw = 0; draw < 20; ++draw) {
    std::vector<Index> bytes;
    bytes.reserve(12);
    for (int t = 0; t < 12; ++t) bytes.push_back(1 + static_cast<Index>(random.uniform() * 20));
    const Chain chain(bytes);
    EXPECT_EQ(peak_of(chain, find_blocks(chain.tensors, chain.steps)), least_peak(bytes)) << draw;
  }
}

TEST(Blocks, OnlyWhatBackwardNeedsRunsAgain) {
  Random random(3, Stream::synthetic);
  int skipped = 0;
  for (int draw = 0; draw < 20; ++draw) {
    Chain chain(std::vector<Index>(24, 10));
    std::set<int> unread;
    for (int t = 1; t < 24; ++t)
      if (random.uniform() < 0.5F) unread.insert(t);
    std::erase_if(chain.steps, [&](const TouchingStep& s) { return s.backward && unread.count(s.reads[0]) > 0; });
    std::set<int> made;
    for (const RepeatedBlock& block : find_blocks(chain.tensors, chain.steps))
      made.insert(block.tensors.begin(), block.tensors.end());
    for (const RepeatedBlock& block : find_blocks(chain.tensors, chain.steps)) {
      const std::set<std::size_t> steps(block.steps.begin(), block.steps.end());
      Index bytes = 0;
      for (const std::size_t step : block.steps) {
        const int tensor = static_cast<int>(step);
        EXPECT_TRUE(unread.count(tensor) == 0 || steps.count(step + 1) == 1)
            << "step " << step << " makes what nothing reads";
        EXPECT_TRUE(steps.count(step - 1) == 1 || made.count(tensor - 1) == 0)
            << "step " << step << " reads what is not there";
        bytes += unread.count(tensor) == 0 ? 10 : 0;
      }
      EXPECT_EQ(bytes, block.bytes);
      // Backward reads the tensors from the last to the first.
      const auto last =
          std::find_if(block.tensors.rbegin(), block.tensors.rend(), [&](int t) { return unread.count(t) == 0; });
      EXPECT_EQ(chain.steps[block.before].reads, (std::vector<int>{*last}));
    }
    for (const int tensor : unread) skipped += made.count(tensor) == 0 ? 1 : 0;
  }
  EXPECT_GT(skipped, 0);
}

TEST(Blocks, NoBoundaryPartsATile) {
  Chain chain({1, 4, 10, 4, 10, 4, 10, 4, 10, 4, 10, 4});
  const std::set<int> tiles{3, 5, 9};
  for (const int tile : tiles) chain.tensors[static_cast<std::size_t>(tile)].kind = KeptTensor::Kind::passing;
  std::erase_if(chain.steps, [&](const TouchingStep& s) { return s.backward && tiles.count(s.reads[0]) > 0; });
  const std::vector<RepeatedBlock> blocks = find_blocks(chain.tensors, chain.steps);
  EXPECT_FALSE(blocks.empty());
  for (const RepeatedBlock& block : blocks) {
    const std::set<std::size_t> steps(block.steps.begin(), block.steps.end());
    for (const int tile : tiles) {
      const auto step = static_cast<std::size_t>(tile);
      EXPECT_EQ(steps.count(step), steps.count(step + 1)) << tile;
    }
  }
}

TEST(Blocks, WhatTheirStepsWriteBesideIsNotKeptEither) {
  const Index inner = 10;
  Chain chain(std::vector<Index>(12, inner));
  const std::vector<RepeatedBlock> plain = find_blocks(chain.tensors, chain.steps);
  for (std::size_t k = 1; k < 12; ++k) {  // tensor 11 + k: nothing reads it, so step k alone would keep it alive
    chain.steps[k].writes.push_back(static_cast<int>(chain.tensors.size()));
    chain.tensors.push_back({.bytes = 1});
  }
  const std::vector<RepeatedBlock> blocks = find_blocks(chain.tensors, chain.steps);
  ASSERT_FALSE(blocks.empty());
  ASSERT_EQ(blocks.size(), plain.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    EXPECT_EQ(blocks[b].steps, plain[b].steps);
    EXPECT_EQ(blocks[b].before, plain[b].before);
    EXPECT_EQ(blocks[b].bytes, plain[b].bytes);  // it was kept for no backward step
    for (const std::size_t step : blocks[b].steps)
      EXPECT_EQ(std::count(blocks[b].tensors.begin(), blocks[b].tensors.end(), 11 + static_cast<int>(step)), 1) << step;
  }
}

TEST(Blocks, WhatMayRunOnceIsKept) {
  for (std::size_t once = 1; once < 12; ++once) {
    Chain chain(std::vector<Index>(12, 10));
    chain.steps[once].once = true;
    for (const RepeatedBlock& block : find_blocks(chain.tensors, chain.steps)) {
      EXPECT_EQ(std::count(block.steps.begin(), block.steps.end(), once), 0) << once;
      EXPECT_EQ(std::count(block.tensors.begin(), block.tensors.end(), static_cast<int>(once)), 0) << once;
    }
  }
}

TEST(Choice, AutomaticTakesTheFirstThatFits) {
  const std::vector<RepeatedBlock> blocks(4, RepeatedBlock{.bytes = 1, .cost = 1});
  const std::vector<Index> bytes{100, 60, 120, 40, 90};  // by the number of blocks
  const auto chosen = [&](Index limit) {
    return choose_blocks(Recompute::automatic, blocks, limit,
                         [&](const std::vector<RepeatedBlock>& some) { return bytes[some.size()]; })
        .size();
  };
  EXPECT_EQ(chosen(100), 0U);
  EXPECT_EQ(chosen(99), 1U);
  EXPECT_EQ(chosen(60), 1U);
  EXPECT_EQ(chosen(59), 3U);
  EXPECT_EQ(chosen(39), 3U);  // none fits: the least
}

TEST(Choice, AutomaticTakesAsFewAsTheMemoryAsksFor) {
  std::vector<RepeatedBlock> blocks;
  for (const Index bytes : {10, 40, 20, 30}) blocks.push_back({.bytes = bytes, .cost = 1});
  const auto with = [](const std::vector<RepeatedBlock>& some) {
    Index total = 200;
    for (const RepeatedBlock& block : some) total -= block.bytes;
    return total;
  };
  const auto chosen = [&](Recompute wanted, Index limit) {
    std::vector<Index> bytes;
    for (const RepeatedBlock& block : choose_blocks(wanted, blocks, limit, with)) bytes.push_back(block.bytes);
    return bytes;
  };
  using Bytes = std::vector<Index>;
  EXPECT_EQ(chosen(Recompute::automatic, 200), Bytes{});
  EXPECT_EQ(chosen(Recompute::automatic, 199), Bytes{40});
  EXPECT_EQ(chosen(Recompute::automatic, 160), Bytes{40});
  EXPECT_EQ(chosen(Recompute::automatic, 159), (Bytes{40, 30}));  // in the order of the network
  EXPECT_EQ(chosen(Recompute::automatic, 5), (Bytes{10, 40, 20, 30}));
  EXPECT_EQ(chosen(Recompute::all, 1000), (Bytes{10, 40, 20, 30}));
  EXPECT_EQ(chosen(Recompute::off, 5), Bytes{});
}

/// A training program of a network, as the CPU compiles it.
class Compiled : public ::testing::Test {
 protected:
  std::unique_ptr<Program> compile(const std::string& model, Recompute recompute, Index limit = 0) {
    const Plan plan = make_plan(build_graph({.model = model, .classes = 10, .image_size = 64}), {});
    const InputSpec input{.height = 64, .width = 64, .channels = 3};
    return backend_->compile(
        plan, {.samples = 4, .height = 64, .width = 64, .input = input, .recompute = recompute, .arena_limit = limit});
  }
  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
};

TEST_F(Compiled, EveryFamilyTakesLessMemory) {
  for (const char* model : {"resnet50", "densenet121", "googlenet", "mobilenet_v2"}) {
    const auto plain = compile(model, Recompute::off), all = compile(model, Recompute::all);
    const Recomputation found = all->recomputation();
    EXPECT_GT(found.blocks, 1) << model;
    EXPECT_EQ(found.blocks, found.found) << model;
    EXPECT_EQ(found.floats_without, plain->arena_floats()) << model;
    EXPECT_LT(all->arena_floats() * 4, plain->arena_floats() * 3) << model;
    // At most the whole forward pass runs again: a third of a step, and the image needs no gradient.
    EXPECT_GT(found.more_flops, 0.05) << model;
    EXPECT_LT(found.more_flops, 0.4) << model;
    EXPECT_EQ(plain->stages().size(), all->stages().size()) << model;
  }
}

TEST_F(Compiled, AutomaticStaysWithinItsLimit) {
  const Index most = compile("resnet50", Recompute::off)->arena_floats();
  const Index least = compile("resnet50", Recompute::all)->arena_floats();
  int before = 0;
  for (const Index limit : {most, most - 1, (2 * most + least) / 3, (most + 2 * least) / 3, least}) {
    const auto program = compile("resnet50", Recompute::automatic, limit);
    EXPECT_LE(program->arena_floats(), limit);
    EXPECT_GE(program->recomputation().blocks, before);
    before = program->recomputation().blocks;
  }
  EXPECT_EQ(compile("resnet50", Recompute::automatic, most)->recomputation().blocks, 0);
  const auto too_little = compile("resnet50", Recompute::automatic, 1);
  EXPECT_LE(too_little->arena_floats(), least);
}

}  // namespace
}  // namespace convoy::lowering
