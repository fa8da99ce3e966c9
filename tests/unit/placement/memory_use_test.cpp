// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_use.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backend/factory.hpp"
#include "core/errors.hpp"
#include "engine/data.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

constexpr Index most = most_samples;

TEST(LargestThatFits, MeetsTheBorderExactly) {
  const auto line = [](Index n) { return 1000 + 7 * n; };
  for (const Index limit : {1007, 1008, 1013, 1014, 1700, 123456})
    for (const Index first : {1, 3, 128, 100000})
      EXPECT_EQ(largest_that_fits(limit, first, line), (limit - 1000) / 7) << limit << " from " << first;
}

TEST(LargestThatFits, NotEvenOne) {
  EXPECT_EQ(largest_that_fits(99, 64, [](Index n) { return 100 * n; }), 0);
  EXPECT_EQ(largest_that_fits(-5, 64, [](Index n) { return n; }), 0);
}

TEST(LargestThatFits, MoreThanAnybodyTakes) {
  EXPECT_EQ(largest_that_fits(Index{1} << 40, 64, [](Index n) { return n; }), most);
  EXPECT_EQ(largest_that_fits(most, 64, [](Index n) { return n; }), most);
  EXPECT_EQ(largest_that_fits(most - 1, 64, [](Index n) { return n; }), most - 1);
}

TEST(LargestThatFits, StepsAndCurves) {
  const auto steps = [](Index n) { return (n + 15) / 16 * 1600; };  // tiles of 16
  EXPECT_EQ(largest_that_fits(4800, 1, steps), 48);
  EXPECT_EQ(largest_that_fits(4799, 500, steps), 32);
  EXPECT_EQ(largest_that_fits(10000, 2, [](Index n) { return n * n; }), 100);
}

TEST(LargestThatFits, WhatADeviceRefusesDoesntFit) {
  const auto refused = [](Index n) {
    if (n > 37) fail(Exit::device, "too large");
    return n;
  };
  EXPECT_EQ(largest_that_fits(1000, 8, refused), 37);
  expect_error(Exit::usage, {"wrong"},
               [] { largest_that_fits(10, 1, [](Index) -> Index { fail(Exit::usage, "wrong"); }); });
}

TEST(LargestThatFits, FewCompilationsForALine) {
  int tries = 0;
  largest_that_fits(50'000'000, 128, [&](Index n) {
    ++tries;
    return 123'456 + 31'234 * n;
  });
  EXPECT_LE(tries, 8);  // a bisection from 1 to 65536 takes 16
}

class LargestBatch : public testing::Test {
 protected:
  Index floats(Index batch) {
    return arena_floats(spec_, batch,
                        [&](const CompileSpec& each) { return backend_->compile(plan_, each)->arena_floats(); });
  }
  Index largest(Index limit) {
    return largest_that_fits(limit, 8, [&](Index batch) { return floats(batch); });
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  Plan plan_ = make_plan(build_graph({.model = "resnet8", .classes = 10, .image_size = 32}), {});
  EngineSpec spec_{.sizes = {{.input = {.height = 32, .width = 32, .channels = 3},
                              .eval_input = {.height = 32, .width = 32, .channels = 3},
                              .height = 32,
                              .width = 32,
                              .train_sizes = {8, 3},
                              .eval_size = 2}}};
};

TEST_F(LargestBatch, ItFitsAndTheNextDoesNot) {
  ASSERT_LT(floats(8), floats(40));
  for (const Index limit : {floats(40), floats(40) + 1, floats(41) - 1, floats(25)}) {
    const Index found = largest(limit);
    EXPECT_LE(floats(found), limit);
    EXPECT_GT(floats(found + 1), limit);
  }
  EXPECT_EQ(largest(floats(1) - 1), 0);
}

TEST_F(LargestBatch, EvaluationCountsWithItsOwnBatch) {
  spec_.sizes[0].eval_size = 300;
  EXPECT_EQ(floats(1), floats(2));  // the evaluation's is larger
  EXPECT_EQ(largest(floats(1) - 1), 0);
}

TEST_F(LargestBatch, OfAnEvaluationAlone) {
  spec_.sizes[0].train_sizes.clear();
  const Index found = largest(floats(20));
  EXPECT_LE(floats(found), floats(20));
  EXPECT_GT(floats(found + 1), floats(20));
}

TEST_F(LargestBatch, RecomputationMakesItLarger) {
  spec_.sizes[0].eval_size = 0;
  const auto with = [&](Recompute recompute, Index limit) {
    spec_.device.recompute = recompute;
    spec_.arena_limit = limit;
    return tell_largest_batch(spec_, limit, [&](const CompileSpec& each) {
      EXPECT_NE(each.recompute, Recompute::automatic);  // it would try several numbers of blocks for each batch
      return backend_->compile(plan_, each)->arena_floats();
    });
  };
  const auto largest_with = [&](Recompute recompute, Index limit) {
    spec_.device.recompute = recompute;
    return largest(limit);
  };
  const Index limit = floats(20);
  const Index plain = largest_with(Recompute::off, limit), again = largest_with(Recompute::all, limit);
  ASSERT_LT(plain, again);
  EXPECT_EQ(
      with(Recompute::off, limit),
      fmt::format("the largest batch that fits is {} (--batch-size); with --recompute auto it is {}", plain, again));
  for (const Recompute recompute : {Recompute::all, Recompute::automatic})
    EXPECT_EQ(with(recompute, limit), fmt::format("the largest batch that fits is {} (--batch-size)", again));
  spec_.device.recompute = Recompute::automatic;
  EXPECT_LE(floats(again), limit);

  spec_.device.recompute = Recompute::off;
  const Index little = floats(1) - 1;
  ASSERT_EQ(largest_with(Recompute::all, little), 1);
  EXPECT_EQ(with(Recompute::off, little),
            "not even one image per batch fits; take --recompute auto, with which 1 fits, a smaller --image-size, a "
            "smaller --eval-batch-size or more memory");
}

TEST_F(LargestBatch, SamplesCountWhereTheDeviceComputesInTheHostsMemory) {
  const SetLayout layout = backend_->layout(plan_, {});
  const Index none = other_floats(spec_, plan_, layout, 100, true);
  EXPECT_EQ(none, layout.count() + plan_.table.block() + 100);
  spec_.sample_bytes = 4001;
  EXPECT_EQ(other_floats(spec_, plan_, layout, 100, true), none + 1001);
  EXPECT_EQ(other_floats(spec_, plan_, layout, 100, false), none);
  EXPECT_EQ(other_floats(spec_, plan_, layout, {}, false), layout.count());
}

TEST(KeptSamples, AsLoadingKeepsThem) {
  DatasetInfo info;
  info.samples = 100;
  info.height = info.width = 4;
  info.channels = 3;
  info.encoding = "raw";
  const std::vector<ShapeGroup> groups(1);
  const Range share{20, 30};
  const Index bytes = 30 * 48;
  DataConfig config;
  config.cache = DataCache::automatic;
  EXPECT_EQ(kept_bytes(config, info, share, bytes), bytes);
  EXPECT_EQ(kept_bytes(config, info, share, bytes - 1), 0);
  EXPECT_EQ(kept_evaluated_bytes(config, info, share, {}, bytes), bytes);
  EXPECT_EQ(kept_evaluated_bytes(config, info, share, groups, 100 * bytes), 0);  // they lie all over the split
  config.cache = DataCache::stream;
  EXPECT_EQ(kept_bytes(config, info, share, bytes), 0);
  config.cache = DataCache::ram;
  EXPECT_EQ(kept_bytes(config, info, share, 0), bytes);
  EXPECT_EQ(kept_evaluated_bytes(config, info, share, groups, 0), 100 * 48);
}

TEST_F(LargestBatch, TheEngineRefusesWhatNoHostHas) {
  spec_.set_floats = [](const SetLayout&, const ParameterTable&) { return Index{1} << 50; };
  expect_error(Exit::device, {"the network needs", "million parameters alone", "GB of this host; choose a smaller"},
               [&] { const Engine engine(plan_.graph, spec_, make_cpu_backend(1), ""); });
  const double host = memory_of(*backend_, 1).bytes;
  ASSERT_GT(host, 0);
  spec_.set_floats = [&](const SetLayout&, const ParameterTable& table) {
    return static_cast<Index>(host / 4) - table.block() - 1;
  };
  expect_error(
      Exit::device,
      {"the network needs", "GB of this host", "not even one image per batch fits; take a smaller --image-size"},
      [&] { const Engine engine(plan_.graph, spec_, make_cpu_backend(1), ""); });
  spec_.sizes[0].train_sizes = {20000};
  const auto left = static_cast<Index>(host / 4) - floats(50);
  spec_.set_floats = [&](const SetLayout&, const ParameterTable&) { return left; };
  expect_error(Exit::device, {"the largest batch that fits is ", "--batch-size"},
               [&] { const Engine engine(plan_.graph, spec_, make_cpu_backend(1), ""); });
}

}  // namespace
}  // namespace convoy
