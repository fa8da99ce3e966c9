// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/updater.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "network/models.hpp"
#include "optim/rule_info.hpp"
#include "support/formula.hpp"
#include "support/golden.hpp"
#include "support/rounding.hpp"

namespace convoy::cpu {
namespace {

/// Parameters, gradients and state of a plan on the host.
class Bench {
 public:
  Bench(Plan plan, const OptimiserSpec& spec) : plan_(std::move(plan)), layout_(set_layout(plan_.table, spec)) {
    block_.assign(static_cast<std::size_t>(layout_.count()), 0.0F);
    gradients_.assign(static_cast<std::size_t>(plan_.table.block()), 0.0F);
    updater_ = make_updater(plan_, spec, step_, counters_);
    arena_.assign(static_cast<std::size_t>(updater_->arena_floats() + 16), std::numeric_limits<float>::quiet_NaN());
    // On 64 bytes, as a backend's memory is.
    std::size_t space = arena_.size() * sizeof(float);
    void* start = arena_.data();
    updater_->bind(static_cast<float*>(std::align(64, 0, start, space)));
  }
  void step(float learning_rate, const OptionValues& options) {
    step_.learning_rate = learning_rate;
    step_.options = options;
    updater_->launch({block_.data(), layout_.count()}, gradients_.data());
  }
  void set(std::vector<float>& block, Range range, const reference::Values& values) {
    std::copy(values.begin(), values.end(), block.begin() + range.begin);
  }
  reference::Values values(Range range) const {
    return {block_.begin() + layout_.values.begin + range.begin, block_.begin() + layout_.values.begin + range.end()};
  }
  const DeviceState& state() { return *layout_.device_state(block_.data()); }

  Plan plan_;
  SetLayout layout_;
  std::vector<float> block_, gradients_, arena_;
  StepParams step_;
  Counters counters_;
  std::unique_ptr<Updater> updater_;
};

TEST(Updater, EqualsPyTorch) {
  const std::vector<GoldenOptimiser> optimisers = load_golden_optimisers();
  EXPECT_EQ(optimisers.size(), 19U);
  for (const GoldenOptimiser& golden : optimisers) {
    Bench bench(golden_optimiser_plan(golden), golden.spec);
    const Parameter &a = bench.plan_.table.rows[0], &b = bench.plan_.table.rows[1];
    bench.set(bench.block_, a.range, formula_values("optimiser/a", 40));
    bench.set(bench.block_, b.range, formula_values("optimiser/b", 21));
    for (std::size_t step = 0; step < golden.rates.size(); ++step) {
      bench.set(bench.gradients_, a.range, formula_values(fmt::format("optimiser/da{}", step), 40));
      bench.set(bench.gradients_, b.range, formula_values(fmt::format("optimiser/db{}", step), 21));
      const bool skipped = golden.skipped.count(step) > 0;
      if (skipped) bench.set(bench.gradients_, a.range, reference::Values(40, std::nan("")));
      bench.gradients_[static_cast<std::size_t>(bench.plan_.table.flags.begin + 1)] = skipped ? 1 : 0;
      bench.step(golden.rates[step], golden.options);
    }
    SCOPED_TRACE(golden.name);
    expect_golden(golden.results.at("a"), "optimiser/a", bench.values(a.range), golden.tolerance());
    expect_golden(golden.results.at("b"), "optimiser/b", bench.values(b.range), golden.tolerance());
    EXPECT_EQ(bench.state().applied, static_cast<float>(golden.rates.size() - golden.skipped.size()));
    EXPECT_EQ(bench.counters_.skipped, static_cast<Index>(golden.skipped.size()));
  }
}

Plan small_network() {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 10;
  spec.norm_momentum = 0.25F;
  PlanSpec plan;
  plan.replicas = 4;
  plan.weight_decay = 1e-4F;
  return make_plan(build_graph(spec), plan);
}

TEST(Updater, LayoutHoldsEverythingOnce) {
  const Plan plan = small_network();
  for (const auto& [rule, slots] :
       {std::pair{Rule::sgd, 1}, {Rule::nesterov, 1}, {Rule::adamw, 2}, {Rule::rmsprop, 2}, {Rule::lars, 1}}) {
    const SetLayout layout = set_layout(plan.table, {.rule = rule});
    EXPECT_EQ(layout.slots.size(), static_cast<std::size_t>(slots));
    EXPECT_EQ(layout.values, (Range{0, plan.table.parameters.count}));
    EXPECT_EQ(layout.optimiser.count, slots * plan.table.parameters.count);
    EXPECT_EQ(layout.statistics.count, plan.table.statistics.count);
    EXPECT_GE(layout.optimiser.begin, layout.values.end());
    EXPECT_GE(layout.statistics.begin, layout.optimiser.end());
    EXPECT_GE(layout.state.begin, layout.statistics.end());
    EXPECT_EQ(layout.state.count, 16);
    for (int slot = 0; slot < slots; ++slot)
      EXPECT_TRUE(layout.optimiser.contains(layout.slot(static_cast<std::size_t>(slot)).end() - 1));
    const SetEnd end = set_end(layout.count(), plan.table.statistics.count);
    EXPECT_EQ(end.statistics, layout.statistics);
    EXPECT_EQ(end.state, layout.state);
    for (const Range range : {layout.optimiser, layout.statistics, layout.state}) EXPECT_EQ(range.begin % 16, 0);
  }
}

TEST(Updater, FoldsTheBatchIntoRunningStatistics) {
  Bench bench(small_network(), {});
  const ParameterTable& table = bench.plan_.table;
  ASSERT_EQ(table.norms.size(), 9U);
  const reference::Values running = formula_values("running", table.statistics.count),
                          batch = formula_values("batch", table.statistics.count);
  bench.set(bench.block_, bench.layout_.statistics, running);
  bench.set(bench.gradients_, table.statistics, batch);
  bench.step(0.1F, {{0.9}});
  for (const NormStatistics& norm : table.norms) {
    for (const Range range : {norm.mean, norm.variance}) {
      for (Index i = range.begin; i < range.end(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        ASSERT_FLOAT_EQ(bench.block_[static_cast<std::size_t>(bench.layout_.statistics.begin) + k],
                        static_cast<float>(0.75 * running[k] + 0.25 * batch[k]));
      }
    }
  }
}

TEST(Updater, AFlagMasksEverything) {
  for (const float flag :
       {1.0F, -2.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Bench bench(small_network(), {.rule = Rule::nesterov, .clip_norm = 1});
    bench.set(bench.block_, {0, bench.layout_.state.begin}, formula_values("set", bench.layout_.state.begin));
    bench.gradients_.assign(bench.gradients_.size(), std::numeric_limits<float>::quiet_NaN());
    const Index flags = bench.plan_.table.flags.begin;
    for (Index i = 0; i < 4; ++i) bench.gradients_[static_cast<std::size_t>(flags + i)] = i < 2 ? 0 : flag;
    const std::vector<float> before = bench.block_;
    bench.step(0.1F, {{0.9}});
    bench.step(0.1F, {{0.9}});
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + bench.layout_.state.begin, bench.block_.begin()));
    EXPECT_EQ(bench.counters_.skipped, 2);
    EXPECT_EQ(bench.counters_.bad_replica, 2);
    EXPECT_EQ(bench.state().applied, 0);
    EXPECT_EQ(bench.state().skipped, 2);
  }
}

TEST(Updater, ARateOfItsOwnEndsAtItsStep) {
  Plan plan = small_network();
  for (Parameter& row : plan.table.rows) {
    if (row.name == "fc.bias") row.rate_multiplier = 4;
    if (row.name == "conv1.weight") row.rate_multiplier = 0.5F, row.rate_ends = 7;
  }
  Bench bench(plan, {.rule = Rule::sgd});
  std::fill_n(bench.gradients_.begin(), plan.table.parameters.count, 1.0F);
  for (const Index step : {6, 7}) {
    bench.step_.step = step;
    bench.step(0.25F, {{0}});  // from 0, so that decay adds nothing in the first step
  }
  const auto at = [&](const char* name) { return bench.values(plan.table.find(name)->range).front(); };
  const double decay = plan.table.find("fc.bias")->decay;
  EXPECT_FLOAT_EQ(static_cast<float>(at("fc.bias")), static_cast<float>(-1 - (1 - decay)));
  EXPECT_EQ(at("conv1.weight"), -0.125);
}

TEST(Updater, FrozenParametersStay) {
  Plan plan = small_network();
  for (Parameter& row : plan.table.rows) row.trainable = row.name.starts_with("fc.");
  Bench bench(plan, {.rule = Rule::sgd, .clip_norm = 1});
  const reference::Values start = formula_parameters(plan.table);
  bench.set(bench.block_, bench.layout_.values, start);
  // Only the last layer's gradient counts for the norm: |g| = 2, so it is halved.
  bench.gradients_.assign(bench.gradients_.size(), 0.0F);
  std::fill_n(bench.gradients_.begin() + plan.table.find("conv1.weight")->range.begin, 100, 1e3F);
  bench.gradients_[static_cast<std::size_t>(plan.table.find("fc.bias")->range.begin)] = 2;
  bench.step(0.5F, {{0}});
  for (const Parameter& row : plan.table.rows) {
    const reference::Values values = bench.values(row.range);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double old = start[static_cast<std::size_t>(row.range.begin) + i];
      if (row.name == "fc.bias" && i == 0) {
        // clip_factor adds 1e-6 to the norm. The start, the factor, the product and the difference are rounded.
        ASSERT_NEAR(values[i], old - 0.5 * 2 / (2 + 1e-6), 4 * fp32_unit * (std::abs(old) + 0.5));
      } else if (row.name == "fc.weight") {
        ASSERT_NEAR(values[i], old - 0.5 * 1e-4 * old, 3 * fp32_unit * std::abs(old)) << "decay isn't clipped";
      } else {
        ASSERT_EQ(values[i], old) << row.name;
      }
    }
  }
}

/// As a run that stops after two steps and goes on from its checkpoint, with threads of another number.
TEST(Updater, EveryRuleGoesOnFromTheSetToTheSameBits) {
  const Plan plan = small_network();
  for (const Rule rule : all_rules) {
    SCOPED_TRACE(info_of(rule).name);
    const OptimiserSpec spec{.rule = rule, .clip_norm = 3};
    const OptionValues options = values_of(rule, usual_settings());
    const auto run = [&](Bench& bench, int from, int to) {
      for (int step = from; step < to; ++step) {
        bench.set(bench.gradients_, plan.table.parameters,
                  formula_values(fmt::format("g{}", step), plan.table.parameters.count));
        bench.step(0.01F, options);
      }
    };
    Bench straight(plan, spec), first(plan, spec), second(plan, spec);
    for (Bench* bench : {&straight, &first})
      bench->set(bench->block_, bench->layout_.values, formula_parameters(plan.table));
    const std::vector<float> start = straight.block_;
    run(straight, 0, 4);
    run(first, 0, 2);
    second.block_ = first.block_;
    omp_set_num_threads(1);
    run(second, 2, 4);
    omp_set_num_threads(omp_get_num_procs());
    EXPECT_TRUE(second.block_ == straight.block_);
    EXPECT_FALSE(straight.block_ == start);
  }
}

/// As after an average of replicas that resets their slots: the next update is corrected as the first one.
TEST(Updater, BiasIsCorrectedByTheUpdatesSinceTheSlotsWereZero) {
  const OptimiserSpec spec{.rule = Rule::adamw};
  const OptionValues options{{0.9, 0.999, 1e-8}};
  Bench first(small_network(), spec), again(small_network(), spec);
  const reference::Values start = formula_parameters(first.plan_.table);
  const reference::Values g = formula_values("g", first.plan_.table.parameters.count);
  for (Bench* bench : {&first, &again}) {
    bench->set(bench->block_, bench->layout_.values, start);
    bench->set(bench->gradients_, bench->plan_.table.parameters, g);
  }
  DeviceState& state = *again.layout_.device_state(again.block_.data());
  state.applied = state.slots_zeroed = 1000;
  for (int step = 0; step < 3; ++step) {
    first.step(0.01F, options);
    again.step(0.01F, options);
  }
  EXPECT_EQ(first.values(first.layout_.values), again.values(again.layout_.values));
  EXPECT_EQ(again.state().applied, 1003);
  // The first steps of Adam are of the learning rate's size, whatever the gradient's.
  const reference::Values moved = first.values(first.plan_.table.find("fc.bias")->range);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const auto at = static_cast<std::size_t>(first.plan_.table.find("fc.bias")->range.begin) + i;
    ASSERT_NEAR(moved[i], start[at] - 0.03 * (g[at] > 0 ? 1 : -1), 1e-5);
  }
}

/// Norms of a tensor of several pieces; one that is zero, as a last norm's scale is at first, is updated as by sgd.
TEST(Updater, RatiosAreThoseOfWholeTensors) {
  constexpr Index large = 40003, small = 30;
  Plan plan;
  plan.table.rows.resize(2);
  plan.table.rows[0].range = {0, large};
  plan.table.rows[0].decay = 0.25F;
  plan.table.rows[1].range = {40016, small};
  plan.table.parameters = {0, 40048};
  plan.table.statistics = plan.table.flags = plan.table.exchange = {40048, 0};
  Bench bench(plan, {.rule = Rule::lars});
  const reference::Values w = formula_values("w", large), g = formula_values("g", large),
                          h = formula_values("h", small);
  bench.set(bench.block_, {0, large}, w);
  bench.set(bench.gradients_, {0, large}, g);
  bench.set(bench.gradients_, plan.table.rows[1].range, h);
  bench.step(0.5F, {{0, 0.125, 0}});
  double of_w = 0, of_g = 0;
  for (const double v : w) of_w += v * v;
  for (const double v : g) of_g += v * v;
  const double ratio = 0.125 * std::sqrt(of_w) / (std::sqrt(of_g) + 0.25 * std::sqrt(of_w));
  for (std::size_t i = 0; i < w.size(); ++i)
    ASSERT_NEAR(bench.block_[i], w[i] - 0.5 * ratio * (g[i] + 0.25 * w[i]), 4 * fp32_unit * (std::abs(w[i]) + 1)) << i;
  for (std::size_t i = 0; i < h.size(); ++i) ASSERT_EQ(bench.values(plan.table.rows[1].range)[i], -0.5 * h[i]);
}

/// Tensors larger than a piece, whose sizes are no multiple of anything.
TEST(Updater, LargeTensorsAreUpdatedWhole) {
  Plan plan;
  plan.table.rows.resize(1);
  plan.table.rows[0].range = {0, 100003};
  plan.table.parameters = {0, 100016};
  plan.table.statistics = plan.table.flags = plan.table.exchange = {100016, 0};
  Bench bench(plan, {.rule = Rule::sgd, .clip_norm = 1});
  const reference::Values g = formula_values("g", 100003);
  double squares = 0;
  for (const double v : g) squares += v * v;
  bench.set(bench.gradients_, {0, 100003}, g);
  bench.step(1, {{0.5}});
  const double bound = fp32_unit * (4 + std::sqrt(static_cast<double>(g.size())));  // support/rounding.hpp
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double expected = -g[i] / std::sqrt(squares);
    ASSERT_NEAR(bench.block_[i], expected, bound * std::abs(expected)) << i;
  }
}

}  // namespace
}  // namespace convoy::cpu
