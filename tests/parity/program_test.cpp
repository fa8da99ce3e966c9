// SPDX-License-Identifier: Apache-2.0
// What the seam promises of a program beyond its numbers: stages, modes, flags, masks, replay of choices, synchronised
// norms.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "network/models.hpp"
#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/reference/network.hpp"
#include "support/rounding.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Tensor;
using reference::Values;

constexpr Index image = 12, classes = 6;

GraphSpec resnet8(const char* activation) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = classes;
  spec.activation = activation;
  return spec;
}

double largest(const Values& values) {
  double size = 0;
  for (const double value : values) size = std::max(size, std::abs(value));
  return size;
}

class Programs : public testing::Test {
 protected:
  explicit Programs(const PlanSpec& spec = {.replicas = 4, .bucket_floats = 3000})
      : plan_(make_plan(build_graph(resnet8("tanh")), spec)), values_(formula_parameters(plan_.table)) {}

  static CompileSpec compile_for(Index samples, Mode mode = Mode::train) {
    CompileSpec spec;
    spec.samples = samples;
    spec.height = spec.width = image;
    spec.mode = mode;
    spec.input = formula_input(image, image, 3);
    spec.topk = 2;
    return spec;
  }
  Values running_statistics() const {
    Values statistics(static_cast<std::size_t>(plan_.table.statistics.count), 0.0);
    for (const NormStatistics& norm : plan_.table.norms) {
      const Values mean = formula_values(norm.name + "/mean", norm.mean.count, 0.5);
      const Values variance = formula_values(norm.name + "/variance", norm.variance.count, 0.5, 1);
      std::copy(mean.begin(), mean.end(), statistics.begin() + norm.mean.begin);
      std::copy(variance.begin(), variance.end(), statistics.begin() + norm.variance.begin);
    }
    return statistics;
  }
  /// Only the elements of tensors: what lies between them is nobody's.
  template <class Use>
  void for_each_tensor(const Use& use) const {
    for (const Parameter& row : plan_.table.rows) use(row.name, row.range);
    for (const NormStatistics& norm : plan_.table.norms) {
      use(norm.name + " mean", Range{plan_.table.statistics.begin + norm.mean.begin, norm.mean.count});
      use(norm.name + " variance", Range{plan_.table.statistics.begin + norm.variance.begin, norm.variance.count});
    }
  }
  void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, float factor = 1) const {
    for_each_tensor([&](const std::string& name, Range range) {
      for (Index i = range.begin; i < range.end(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        ASSERT_EQ(a[k], factor * b[k]) << name << '[' << i - range.begin << ']';
      }
    });
  }

  /// What rounding may do to a program of `samples` images whichever kernels it chose, relative to the size of its
  /// values.
  double rounding(Index samples) const {
    return winograd_gain * rounding_bound(plan_.graph, Tensor(samples, 3, image, image));
  }
  /// The statistics of norms: means to the spread of their channels, variances to the largest.
  void expect_statistics(const std::vector<float>& block, const reference::NetworkResult& exact, Index samples) const {
    for (const NormStatistics& norm : plan_.table.norms) {
      double variance = 0;
      for (Index i = norm.variance.begin; i < norm.variance.end(); ++i)
        variance = std::max(variance, exact.statistics[static_cast<std::size_t>(i)]);
      for (const auto& [range, scale] : {std::pair{norm.mean, std::sqrt(variance)}, {norm.variance, variance}}) {
        for (Index i = range.begin; i < range.end(); ++i) {
          const double expected = exact.statistics[static_cast<std::size_t>(i)];
          EXPECT_NEAR(block[static_cast<std::size_t>(plan_.table.statistics.begin + i)], expected,
                      rounding(samples) * std::max(scale, std::abs(expected)))
              << norm.name;
        }
      }
    }
  }

  static constexpr Index batch = 5;
  Plan plan_;
  Values values_;
  std::unique_ptr<Backend> backend_ = make_test_backend();
  std::vector<std::uint8_t> images_ = formula_images("x", batch* image* image * 3);
  std::vector<SampleSpec> samples_ = formula_samples("labels", batch, classes, false);
};

TEST_F(Programs, StagesAreThePlansBucketsAndFinalWhenReturned) {
  ProgramBench bench(*backend_, plan_, compile_for(batch), values_);
  const auto stages = bench.program().stages();
  std::vector<Range> ranges;
  for (const ReadyRange& stage : stages) {
    EXPECT_EQ(stage.timing, SumTiming::overlapped);
    if (stage.range.count > 0) ranges.push_back(stage.range);
  }
  EXPECT_GT(plan_.buckets.size(), 3U);
  EXPECT_EQ(ranges, plan_.buckets);

  backend_->fill(bench.gradient_block() + plan_.table.flags.begin, 4, 0);
  bench.feed({.replica = 1, .scale = 0.2F}, images_, samples_);
  std::vector<std::vector<float>> after;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    bench.launch(stage);
    after.push_back(bench.gradients());
  }
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for_each_tensor([&](const std::string& name, Range range) {
      if (!stages[stage].range.contains(range.begin)) return;
      for (Index i = range.begin; i < range.end(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        ASSERT_EQ(after[stage][k], after.back()[k]) << name << " changed after stage " << stage;
      }
    });
  }
  bench.expect_intact();
}

TEST_F(Programs, AnotherArenaGivesTheSame) {
  const Values statistics = running_statistics();
  ProgramBench bench(*backend_, plan_, compile_for(batch, Mode::evaluate), values_, &statistics);
  const FencedBlock other(*backend_, bench.program().arena_floats(), "another arena");
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    bench.feed({}, images_, samples_);
    bench.launch_all();
    const std::vector<float> logits = bench.logits();
    if (round == 0) first = logits;
    EXPECT_EQ(logits, first);
    bench.program().bind(other.data(), nullptr);
  }
  other.expect_guards();
}

TEST_F(Programs, EvaluationUsesRunningStatisticsAndMasksRows) {
  const Values statistics = running_statistics();
  ProgramBench bench(*backend_, plan_, compile_for(batch, Mode::evaluate), values_, &statistics);
  ASSERT_EQ(bench.program().stages().size(), 1U);
  EXPECT_EQ(bench.program().stages()[0].range.count, 0);
  const Tensor x = formula_network_input(images_, {batch, 3, image, image});
  const reference::NetworkResult exact = reference::run_network(plan_, {&values_, &statistics, &x, samples_, 1});
  backend_->take_counters();
  constexpr Index valid = 3;
  bench.feed({.valid_count = valid}, images_, samples_);
  bench.launch_all();
  const std::vector<float> logits = bench.logits(), loss = bench.loss();
  // A logit's error is at most `error`, a loss changes by at most twice what its logits do.
  const double error = rounding(batch) * largest(exact.logits.values);
  Counters expected;
  for (Index i = 0; i < batch; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (Index k = 0; k < classes; ++k) {
      EXPECT_NEAR(logits[static_cast<std::size_t>(i * classes + k)], exact.logits.at(i, k), error);
    }
    EXPECT_NEAR(loss[row], i < valid ? exact.loss[row] : 0, 2 * error);
    if (i >= valid) continue;
    Index before = 0;
    for (Index k = 0; k < classes; ++k) before += exact.logits.at(i, k) > exact.logits.at(i, samples_[row].a) ? 1 : 0;
    expected.sums[Counter::top1] += before < 1 ? 1 : 0;
    expected.sums[Counter::topk] += before < 2 ? 1 : 0;
    expected.sums[Counter::loss] += exact.loss[row];
  }
  const Counters counters = take_counters(*backend_);
  EXPECT_EQ(counters.samples, valid);
  EXPECT_EQ(counters.sums[Counter::top1], expected.sums[Counter::top1]);
  EXPECT_EQ(counters.sums[Counter::topk], expected.sums[Counter::topk]);
  EXPECT_NEAR(counters.sums[Counter::loss], expected.sums[Counter::loss], 2 * valid * error);
  EXPECT_EQ(take_counters(*backend_).samples, 0) << "taking counters starts them anew";
  bench.expect_intact();
}

TEST_F(Programs, ScoreIsTheForwardPassOfTraining) {
  ProgramBench train(*backend_, plan_, compile_for(batch), values_),
      score(*backend_, plan_, compile_for(batch, Mode::score), values_);
  for (ProgramBench* bench : {&train, &score}) {
    bench->feed({.scale = 0.2F}, images_, samples_);
    bench->launch_all();
    bench->expect_intact();
  }
  const std::vector<float> a = train.logits(), b = score.logits();
  const double error = rounding(batch) * largest({a.begin(), a.end()});
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2 * error);
}

/// But for vectors of their norms, the memory is that of a network without: less is added than one head's maps take.
/// A parameter's value follows from its name.
TEST_F(Programs, EvaluationDoesWithoutAuxiliaryHeads) {
  constexpr Index side = 32, few = 2;
  const std::vector<std::uint8_t> images = formula_images("large", few * side * side * 3);
  std::vector<std::vector<float>> logits;
  std::vector<Index> floats;
  for (const char* heads : {"", "true"}) {
    const Plan plan =
        make_plan(build_graph({.model = "googlenet", .classes = classes, .options = {{"aux-heads", heads}}}), {});
    const Values values = formula_parameters(plan.table);
    for (const Mode mode : {Mode::evaluate, Mode::score}) {
      CompileSpec spec = compile_for(few, mode);
      spec.height = spec.width = side;
      spec.input = formula_input(side, side, 3);
      ProgramBench bench(*backend_, plan, spec, values);
      bench.feed({.scale = 0.2F}, images, std::span(samples_).first(few));
      bench.launch_all();
      logits.push_back(bench.logits());
      floats.push_back(bench.program().arena_floats());
    }
  }
  for (const std::size_t mode : {0, 1}) {
    EXPECT_EQ(logits[2 + mode], logits[mode]);
    EXPECT_LT(floats[2 + mode] - floats[mode], few * 128 * 4 * 4) << "room for the maps of a head";
  }
}

TEST_F(Programs, RepeatingAStepGivesTheSameBits) {
  ProgramBench bench(*backend_, plan_, compile_for(batch), values_);
  const std::vector<std::uint8_t> other = formula_images("other", batch * image * image * 3);
  const auto step = [&](std::span<const std::uint8_t> images) {
    backend_->fill(bench.gradient_block(), plan_.table.block(), std::numeric_limits<float>::quiet_NaN());
    bench.feed({.scale = 0.2F}, images, samples_);
    bench.launch_all();
    return bench.gradients();
  };
  const std::vector<float> first = step(images_), second = step(other), third = step(images_);
  expect_same_bits(first, third);
  const auto at = static_cast<std::size_t>(plan_.table.rows[0].range.begin);
  EXPECT_NE(first[at], second[at]);
}

TEST_F(Programs, ChoicesOfAnotherProgramGiveItsBits) {
  CompileSpec spec = compile_for(batch);
  ProgramBench first(*backend_, plan_, spec, values_);
  spec.choices = first.program().choices();
  const auto other_backend = make_test_backend();
  ProgramBench second(*other_backend, plan_, spec, values_);
  EXPECT_EQ(second.program().choices(), first.program().choices());
  for (ProgramBench* bench : {&first, &second}) {
    bench->feed({.scale = 0.2F}, images_, samples_);
    bench->launch_all();
  }
  expect_same_bits(first.gradients(), second.gradients());
}

/// Halving is exact, so all of the gradient block is halved exactly: a replica with half of the samples has half of the
/// weight.
TEST_F(Programs, ScaleWeighsGradientsAndStatistics) {
  ProgramBench bench(*backend_, plan_, compile_for(4), values_);
  const auto step = [&](float scale) {
    bench.feed({.scale = scale}, images_, std::span(samples_).first(4));
    bench.launch_all();
    return bench.gradients();
  };
  const std::vector<float> whole = step(0.25F), half = step(0.125F);
  expect_same_bits(half, whole, 0.5F);
  const Tensor x = formula_network_input(images_, {4, 3, image, image});
  const reference::NetworkResult exact = reference::run_network(plan_, {&values_, nullptr, &x, samples_, 0.25});
  expect_statistics(whole, exact, 4);
}

TEST_F(Programs, NonFiniteValuesSetTheReplicasFlagOnly) {
  for (const char* const name : {"fc.bias", "layer2.0.conv1.weight", "conv1.weight", "bn1.bias"}) {
    Values bad = values_;
    bad[static_cast<std::size_t>(plan_.table.find(name)->range.begin)] = std::numeric_limits<double>::quiet_NaN();
    ProgramBench bench(*backend_, plan_, compile_for(batch), bad);
    const Index flags = plan_.table.flags.begin;
    backend_->fill(bench.gradient_block() + flags, 4, 0);
    bench.feed({.replica = 2, .scale = 0.2F}, images_, samples_);
    bench.launch_all();
    const std::vector<float> gradients = bench.gradients();
    for (Index i = 0; i < 4; ++i) {
      EXPECT_EQ(gradients[static_cast<std::size_t>(flags + i)] != 0, i == 2) << name << ", flag " << i;
    }
  }
}

TEST_F(Programs, HealthyReplicaClearsItsFlag) {
  ProgramBench bench(*backend_, plan_, compile_for(batch), values_);
  bench.feed({.replica = 3, .scale = 0.2F}, images_, samples_);
  bench.launch_all();
  EXPECT_EQ(bench.gradients()[static_cast<std::size_t>(plan_.table.flags.begin + 3)], 0);
}

TEST_F(Programs, ResidentImagesAreRowsToo) {
  ProgramBench bench(*backend_, plan_, compile_for(2), values_);
  backend_->keep_resident(images_.data(), batch, image * image * 3);
  const std::vector<SampleSpec> picked{samples_[4], samples_[1]};  // with sample = 4 and 1
  bench.feed({.scale = 0.5F}, {}, picked);
  bench.launch_all();
  const std::vector<float> resident = bench.gradients();
  bench.feed({.scale = 0.5F}, images_, picked);
  bench.launch_all();
  expect_same_bits(resident, bench.gradients());
}

/// What `bench compute --profile` prints.
TEST_F(Programs, PartsAddUpToTheNetwork) {
  ProgramBench bench(*backend_, plan_, compile_for(batch), values_);
  Program& program = bench.program();
  const std::vector<ProgramPart> parts = program.parts();
  double flops = 0;
  bool backward = false;
  for (const ProgramPart& part : parts) {
    flops += part.flops;
    EXPECT_GE(part.backward, backward) << part.nodes << " stands after parts of backward";
    backward = part.backward;
    EXPECT_TRUE(part.flops == 0 || part.bytes > 0) << part.nodes;
    EXPECT_FALSE(part.nodes.empty());
  }
  EXPECT_TRUE(backward);
  const double exact = batch * cost_of(plan_.graph, image, image).training_flops;
  EXPECT_GE(flops, exact);
  EXPECT_LE(flops, 1.02 * exact);  // cuDNN takes 4 channels of an image where it has 3

  EXPECT_THROW(program.part_seconds(), std::exception) << "nothing is timed that nobody asked for";
  program.time_parts();
  const auto begin = std::chrono::steady_clock::now();
  bench.feed({.scale = 0.2F}, images_, samples_);
  bench.launch_all();
  const std::vector<double> seconds = program.part_seconds();
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(seconds.size(), parts.size());
  double sum = 0;
  for (const double each : seconds) sum += each;
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, whole * 1.001);  // a GPU tells its times in fp32
}

TEST_F(Programs, CeilingsAreRates) {
  const Ceilings ceilings = backend_->measure_ceilings({.images = 1, .copied_bytes = Index{1} << 20});
  EXPECT_GT(ceilings.flops_per_second, 1e6);
  EXPECT_LT(ceilings.flops_per_second, 1e16);
  EXPECT_GT(ceilings.bytes_per_second, 1e6);
  EXPECT_LT(ceilings.bytes_per_second, 1e14);
}

class SynchronisedNorms : public Programs {
 protected:
  SynchronisedNorms() : Programs({.replicas = 2, .bucket_floats = 3000, .sync_bn = true}) {}
};

/// Two replicas of 1 and 3 images that add up their exchange areas are one of 4.
TEST_F(SynchronisedNorms, TwoReplicasAreOneBatch) {
  const Plan alone = make_plan(build_graph(resnet8("tanh")), {});
  const Tensor x = formula_network_input(images_, {4, 3, image, image});
  const reference::NetworkResult exact = reference::run_network(alone, {&values_, nullptr, &x, samples_, 0.25});

  ProgramBench first(*backend_, plan_, compile_for(1), values_), second(*backend_, plan_, compile_for(3), values_);
  const auto stages = first.program().stages();
  ASSERT_EQ(stages.size(), second.program().stages().size()) << "every rank walks the same table";
  first.feed({.replica = 0, .scale = 0.25F, .norm_scale = 0.25F}, images_, std::span(samples_).first(1));
  second.feed({.replica = 1, .scale = 0.25F, .norm_scale = 0.25F}, images_, std::span(samples_).subspan(1, 3));
  for (ProgramBench* bench : {&first, &second}) backend_->fill(bench->gradient_block() + plan_.table.flags.begin, 2, 0);
  std::size_t exchanges = 0, together = 0;
  std::vector<Range> buckets;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    ASSERT_EQ(stages[stage].range, second.program().stages()[stage].range);
    first.launch(stage);
    second.launch(stage);
    const Range range = stages[stage].range;
    if (range.count == 0) continue;
    backend_->add(first.gradient_block() + range.begin, second.gradient_block() + range.begin, range.count);
    backend_->copy(second.gradient_block() + range.begin, first.gradient_block() + range.begin, range.count, 1);
    if (range.begin < plan_.table.exchange.begin) {
      EXPECT_EQ(stages[stage].timing, SumTiming::overlapped);
      buckets.push_back(range);
      continue;
    }
    EXPECT_LE(range.end(), plan_.table.exchange.end());
    ++exchanges;
    if (stages[stage].timing == SumTiming::blocking) continue;
    ++together;
    ASSERT_LT(stage + 1, stages.size());
    EXPECT_EQ(stages[stage + 1].timing, SumTiming::blocking)
        << "nothing is launched between sums that are needed together";
    EXPECT_GE(stages[stage + 1].range.begin, plan_.table.exchange.begin);
  }
  EXPECT_EQ(exchanges, 2 * plan_.table.norms.size());
  EXPECT_GE(together, 2) << "backward, where a shortcut with a norm joins; forward too, where one step makes both";
  EXPECT_EQ(buckets, plan_.buckets);
  const std::vector<float> sum = first.gradients();
  for (const Parameter& row : plan_.table.rows) {
    const Parameter* const same = alone.table.find(row.name);
    double squares = 0, distance = 0;
    for (Index i = 0; i < row.range.count; ++i) {
      const double expected = exact.gradients[static_cast<std::size_t>(same->range.begin + i)];
      squares += expected * expected;
      distance += std::pow(sum[static_cast<std::size_t>(row.range.begin + i)] - expected, 2);
    }
    EXPECT_LE(std::sqrt(distance / squares), rounding(4)) << row.name;
  }
  expect_statistics(sum, exact, 4);
  first.expect_intact();
  second.expect_intact();
}

}  // namespace
}  // namespace convoy
