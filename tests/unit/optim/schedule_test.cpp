// SPDX-License-Identifier: Apache-2.0
// Golden values: torch 2.15 optim.lr_scheduler with one step() a step, 10 epochs of 39 steps, rate 0.4. Printed with
// %.17g.
#include "optim/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"

namespace convoy {
namespace {

constexpr Index steps_per_epoch = 39;

ScheduleSpec run_of(Decay decay) { return {.decay = decay, .rate = 0.4, .epochs = 10}; }

void expect_rates(const ScheduleSpec& spec, const std::vector<Index>& steps, const std::vector<double>& rates) {
  const Schedule schedule(spec, steps_per_epoch);
  ASSERT_EQ(steps.size(), rates.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(schedule.rate(steps[i]), rates[i], 1e-13 + 1e-12 * rates[i]) << "step " << steps[i];
  }
}

// OneCycleLR(max_lr=0.4, total_steps=390)
TEST(Schedule, OneCycleIsPyTorchs) {
  expect_rates(
      run_of(Decay::onecycle), {0, 1, 57, 115, 116, 117, 200, 388, 389},
      {0.016000000000000014, 0.016070409045129519, 0.20280075814218218, 0.39992959095487052, 0.40000000000000002,
       0.39998675756281815, 0.31361329489443379, 1.4842437181860723e-05, 1.5999999999999999e-06});
}

// OneCycleLR(max_lr=0.4, total_steps=390, anneal_strategy='linear', pct_start=0.25, div_factor=10,
// final_div_factor=100)
TEST(Schedule, LinearOneCycleIsPyTorchs) {
  ScheduleSpec spec = run_of(Decay::onecycle);
  spec.onecycle_linear = true;
  spec.onecycle_start = 0.25;
  spec.onecycle_div = 10;
  spec.onecycle_final_div = 100;
  expect_rates(
      spec, {0, 1, 57, 115, 116, 117, 200, 388, 389},
      {0.040000000000000001, 0.043730569948186533, 0.25264248704663211, 0.37472615384615388, 0.37336000000000003,
       0.37199384615384617, 0.25860307692307694, 0.0017661538461538617, 0.00040000000000001146});
}

// SequentialLR([LinearLR(0.01, 1, 78), CosineAnnealingLR(312, eta_min=0.001)], [78])
TEST(Schedule, CosineAfterWarmupIsPyTorchs) {
  ScheduleSpec spec = run_of(Decay::cosine);
  spec.min_rate = 0.001;
  spec.warmup_epochs = 2;
  spec.warmup_rate = 0.004;
  expect_rates(spec, {0, 1, 77, 78, 100, 233, 234, 389},
               {0.0040000000000000001, 0.0090769230769230762, 0.39492307692307654, 0.40000000000000002,
                0.39512502814399525, 0.20250877289603872, 0.20050000000000007, 0.0010101134607266866});
}

// LambdaLR(lambda s: 0.9 ** (s / 39)): ExponentialLR(0.9) of an epoch, in every step
TEST(Schedule, ExponentialIsPyTorchsAtEpochs) {
  ScheduleSpec spec = run_of(Decay::exponential);
  spec.factor = 0.9;
  expect_rates(spec, {0, 39, 78, 117}, {0.4, 0.36, 0.324, 0.2916});
  const Schedule between(spec, steps_per_epoch);
  EXPECT_NEAR(between.rate(1), 0.4 * std::pow(0.9, 1.0 / 39), 1e-15);
  spec.warmup_epochs = 1;
  spec.min_rate = 0.33;
  expect_rates(spec, {39, 78, 117}, {0.4, 0.36, 0.33});
}

// ReduceLROnPlateau(mode='max', threshold=0, patience=2) on 1 2 2 2 2 3 3 3 3 3 3 3: cuts after the 5th, 9th and 12th
TEST(Schedule, PlateauIsPyTorchs) {
  Plateau plateau;
  std::vector<Index> cuts;
  double best = -1;
  for (const double top1 : {1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3}) {
    plateau.see(top1 > best, 2);
    best = std::max(best, top1);
    cuts.push_back(plateau.cuts);
  }
  EXPECT_EQ(cuts, (std::vector<Index>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3}));
}

// CosineAnnealingLR(390, eta_min=0.001)
TEST(Schedule, CosineIsPyTorchs) {
  ScheduleSpec spec = run_of(Decay::cosine);
  spec.min_rate = 0.001;
  expect_rates(spec, {0, 1, 77, 78, 100, 233, 234, 389},
               {0.40000000000000002, 0.39999352736544735, 0.36283824131950476, 0.36189889037780215, 0.3386985085251652,
                0.14038148431593997, 0.13885110962219793, 0.0010064726345526728});
}

// PolynomialLR(390, power=2)
TEST(Schedule, PolynomialIsPyTorchs) {
  expect_rates(run_of(Decay::poly), {0, 1, 77, 78, 100, 233, 234, 389},
               {0.40000000000000002, 0.39795134779750163, 0.25764365548980922, 0.25599999999999984, 0.22117028270874409,
                0.064823142669296424, 0.063999999999999918, 2.6298487836949154e-06});
}

// LinearLR(1.0, 0.025, 390)
TEST(Schedule, LinearIsPyTorchs) {
  ScheduleSpec spec = run_of(Decay::linear);
  spec.min_rate = 0.01;
  expect_rates(spec, {0, 1, 77, 78, 100, 233, 234, 389},
               {0.40000000000000002, 0.39900000000000002, 0.32299999999999995, 0.32199999999999995, 0.29999999999999993,
                0.16699999999999982, 0.16599999999999981, 0.010999999999999972});
}

// MultiStepLR([117, 234], 0.1) and StepLR(117, 0.5)
TEST(Schedule, StepsArePyTorchs) {
  ScheduleSpec spec = run_of(Decay::multistep);
  spec.step_epochs = {3, 6};
  expect_rates(spec, {0, 116, 117, 233, 234, 389},
               {0.4, 0.4, 0.040000000000000008, 0.040000000000000008, 0.004, 0.004});
  spec = run_of(Decay::step);
  spec.step_epochs = {3};
  spec.factor = 0.5;
  expect_rates(spec, {0, 116, 117, 233, 234, 389}, {0.4, 0.4, 0.2, 0.2, 0.1, 0.05});
}

TEST(Schedule, FractionsOfEpochsFallOnSteps) {
  ScheduleSpec spec = run_of(Decay::multistep);
  spec.step_epochs = {0.5};  // 19.5 steps
  expect_rates(spec, {19, 20}, {0.4, 0.04});
}

TEST(Schedule, PhasesArePiecewiseLinear) {
  ScheduleSpec spec = run_of(Decay::phases);
  spec.phases = {{1, 3, 0.1, 0.5}, {3, 5, 1.0, 0.0}, {6, 7, 0.2, 0.2}};
  expect_rates(spec, {0, 39, 78, 116, 117, 156, 195, 220, 234, 300, 1000},
               {0.1, 0.1, 0.3, 0.1 + 0.4 * 77 / 78, 1.0, 0.5, 0.0, 0.0, 0.2, 0.2, 0.2});
}

TEST(Schedule, TellsEpochsThatNoPhaseCovers) {
  ScheduleSpec spec;
  spec.decay = Decay::phases;
  spec.epochs = 10;
  spec.phases = {{1, 3, 0.1, 0.5}, {3, 5, 1.0, 0.25}, {6, 7, 0.2, 0.125}};
  const std::vector<RatePhase> gaps = epochs_between_phases(spec);
  ASSERT_EQ(gaps.size(), 3U);
  const double expected[][3] = {{0, 1, 0.1}, {5, 6, 0.25}, {7, 10, 0.125}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gaps[i].begin_epoch, expected[i][0]);
    EXPECT_EQ(gaps[i].end_epoch, expected[i][1]);
    EXPECT_EQ(gaps[i].from, expected[i][2]);
  }
  spec.epochs = 4;
  EXPECT_EQ(epochs_between_phases(spec).size(), 1U) << "what lies beyond the run is no gap";
  spec.decay = Decay::cosine;
  EXPECT_TRUE(epochs_between_phases(spec).empty());
}

TEST(Schedule, StaysAtItsEndAfterTheRun) {
  for (const Decay decay : {Decay::poly, Decay::cosine, Decay::linear}) {
    ScheduleSpec spec = run_of(decay);
    spec.min_rate = 0.01;
    expect_rates(spec, {390, 391, 5000}, {0.01, 0.01, 0.01});
  }
  const Schedule onecycle(run_of(Decay::onecycle), steps_per_epoch);
  EXPECT_EQ(onecycle.rate(389), onecycle.rate(4000));
}

TEST(Schedule, ConstantNeedsNoLengthAndMayWarmUp) {
  ScheduleSpec spec{.decay = Decay::constant, .rate = 0.2, .warmup_epochs = 1};
  expect_rates(spec, {0, 13, 39, 4000}, {0, 0.2 / 3, 0.2, 0.2});
}

TEST(Schedule, BadSpecsAreUsageErrors) {
  std::vector<ScheduleSpec> bad(12, run_of(Decay::cosine));
  bad[0].rate = -1;
  bad[1].rate = 0.0 / 0.0;
  bad[2].epochs = 0;
  bad[3].warmup_epochs = 10;
  bad[4].warmup_epochs = -1;
  bad[5].decay = Decay::multistep;
  bad[6].decay = Decay::multistep;
  bad[6].step_epochs = {6, 3};
  bad[7].decay = Decay::step;
  bad[7].step_epochs = {3, 6};
  bad[8].decay = Decay::onecycle;
  bad[8].onecycle_start = 1;
  bad[9].decay = Decay::onecycle;
  bad[9].warmup_epochs = 1;
  bad[10].decay = Decay::phases;
  bad[11].decay = Decay::phases;
  bad[11].phases = {{0, 5, 0.1, 0.2}, {4, 6, 0.2, 0.1}};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    try {
      Schedule schedule(bad[i], steps_per_epoch);
      ADD_FAILURE() << "no error for case " << i;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage) << e.what();
    }
  }
}

TEST(ScaledRate, FollowsTheGlobalBatch) {
  EXPECT_DOUBLE_EQ(scaled_rate(0.1, Scaling::none, 1024, 256), 0.1);
  EXPECT_DOUBLE_EQ(scaled_rate(0.1, Scaling::linear, 1024, 256), 0.4);
  EXPECT_DOUBLE_EQ(scaled_rate(0.1, Scaling::sqrt, 1024, 256), 0.2);
  EXPECT_THROW(scaled_rate(0.1, Scaling::linear, 1024, 0), Error);
}

}  // namespace
}  // namespace convoy
