// SPDX-License-Identifier: Apache-2.0
// Frozen parameters and norms in a program: the gradients of all others are the derivatives of the loss that it says,
// and what is frozen takes no part.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "network/models.hpp"
#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Values;

constexpr Index image = 12, classes = 6, batch = 5;

struct Case {
  const char* name;
  const char* activation;
  const char* version;
  std::vector<std::string> frozen;
};

std::vector<std::string> norms_of(const std::string& version) {
  if (version == "v2") return {"bn", "*.bn?"};
  return {"bn1", "*.bn?", "*.downsample.1"};
}

std::vector<std::string> with(std::vector<std::string> patterns, const std::string& more) {
  patterns.push_back(more);
  return patterns;
}

GraphSpec resnet8(const Case& made) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = classes;
  spec.activation = made.activation;
  spec.options["resnet-version"] = made.version;
  return spec;
}

CompileSpec compile_for(Mode mode) {
  CompileSpec spec;
  spec.samples = batch;
  spec.height = spec.width = image;
  spec.mode = mode;
  spec.input = formula_input(image, image, 3);
  spec.topk = 2;
  return spec;
}

Values running_statistics(const ParameterTable& table) {
  Values statistics(static_cast<std::size_t>(table.running_floats()), 0.0);
  for (const NormStatistics& norm : table.norms) {
    const Values mean = formula_values(norm.name + "/mean", norm.mean.count, 0.5);
    const Values variance = formula_values(norm.name + "/variance", norm.variance.count, 0.5, 1);
    std::copy(mean.begin(), mean.end(), statistics.begin() + norm.mean.begin);
    std::copy(variance.begin(), variance.end(), statistics.begin() + norm.variance.begin);
  }
  return statistics;
}

class Frozen : public testing::TestWithParam<Case> {
 protected:
  Plan plan_of(const std::vector<std::string>& frozen) const {
    return make_plan(build_graph(resnet8(GetParam())), {.replicas = 1, .bucket_floats = 3000, .frozen = frozen});
  }
  struct Ran {
    double loss = 0;
    std::vector<float> logits, gradients;
    std::vector<ReadyRange> stages;
  };
  Ran run(const Plan& plan, const Values& values, Mode mode = Mode::train) {
    const Values statistics = running_statistics(plan.table);
    ProgramBench bench(*backend_, plan, compile_for(mode), values, &statistics);
    bench.feed({.scale = 1.0F / batch}, images_, samples_);
    bench.launch_all();
    bench.expect_intact();
    Ran ran;
    const std::vector<float> losses = bench.loss();
    ran.loss = std::accumulate(losses.begin(), losses.end(), 0.0) / batch;
    ran.logits = bench.logits();
    if (mode == Mode::train) ran.gradients = bench.gradients();
    const auto stages = bench.program().stages();
    ran.stages.assign(stages.begin(), stages.end());
    return ran;
  }

  std::unique_ptr<Backend> backend_ = make_test_backend();
  std::vector<std::uint8_t> images_ = formula_images("x", batch* image* image * 3);
  std::vector<SampleSpec> samples_ = formula_samples("labels", batch, classes, false);
};

/// The loss at two points along the gradient.
TEST_P(Frozen, GradientsAreTheDerivativesOfTheLoss) {
  const Plan plan = plan_of(GetParam().frozen);
  const Values values = formula_parameters(plan.table);
  const Ran ran = run(plan, values);
  double square = 0;
  for (const Parameter& row : plan.table.rows)
    for (Index i = row.range.begin; row.trainable && i < row.range.end(); ++i) {
      const double g = ran.gradients[static_cast<std::size_t>(i)];
      ASSERT_TRUE(std::isfinite(g)) << row.name;
      square += g * g;
    }
  ASSERT_GT(square, 1e-6);
  constexpr double h = 2e-3;
  double at[2];
  for (int side = 0; side < 2; ++side) {
    Values moved = values;
    for (const Parameter& row : plan.table.rows)
      for (Index i = row.range.begin; row.trainable && i < row.range.end(); ++i)
        moved[static_cast<std::size_t>(i)] +=
            (side == 0 ? h : -h) * ran.gradients[static_cast<std::size_t>(i)] / std::sqrt(square);
    at[side] = run(plan, moved).loss;
  }
  EXPECT_NEAR((at[0] - at[1]) / (2 * h), std::sqrt(square), 0.01 * std::sqrt(square));
}

TEST_P(Frozen, OnlyWhatTrainsLiesInTheGradientBlock) {
  const Plan plan = plan_of(GetParam().frozen), all = plan_of({});
  const Ran ran = run(plan, formula_parameters(plan.table));
  Index frozen = 0, sum = 0;
  for (const Parameter& row : plan.table.rows) {
    EXPECT_EQ(row.trainable, row.range.end() <= plan.table.trained_floats()) << row.name;
    frozen += row.trainable ? 0 : align_floats(row.range.count);
  }
  EXPECT_EQ(plan.table.frozen_floats, frozen);
  EXPECT_EQ(plan.table.parameters, all.table.parameters);
  EXPECT_LE(plan.table.block(), all.table.block() - frozen);
  for (const ReadyRange& stage : ran.stages) sum += stage.range.count;
  EXPECT_EQ(sum, plan.table.flags.end()) << "the stages give all of the block away";
  EXPECT_EQ(plan.digest, all.digest) << "it is the same network";
}

/// Where no norm takes the batch's statistics a training program computes what evaluation does, and what else is frozen
/// changes nothing in the gradients of the rest.
TEST_P(Frozen, WithoutMovingNormsTheForwardPassIsEvaluations) {
  const std::vector<std::string> all_norms = norms_of(GetParam().version);
  const Plan norms = plan_of(all_norms), all = plan_of({});
  const Ran trained = run(norms, formula_parameters(norms.table));
  const Ran evaluated = run(all, formula_parameters(all.table), Mode::evaluate);
  for (std::size_t i = 0; i < trained.logits.size(); ++i)
    EXPECT_NEAR(trained.logits[i], evaluated.logits[i], 1e-4 * (1 + std::abs(evaluated.logits[i])));
  std::vector<std::string> both = all_norms;
  both.insert(both.end(), GetParam().frozen.begin(), GetParam().frozen.end());
  const Plan plan = plan_of(both);
  const Ran ran = run(plan, formula_parameters(plan.table));
  for (const Parameter& row : plan.table.rows) {
    if (!row.trainable) continue;
    const Parameter& other = *norms.table.find(row.name);
    double size = 0;
    for (Index i = 0; i < row.range.count; ++i)
      size = std::max(size, std::abs(double{trained.gradients[static_cast<std::size_t>(other.range.begin + i)]}));
    for (Index i = 0; i < row.range.count; ++i)
      ASSERT_NEAR(ran.gradients[static_cast<std::size_t>(row.range.begin + i)],
                  trained.gradients[static_cast<std::size_t>(other.range.begin + i)], 1e-4 * size)
          << row.name << '[' << i << ']';
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Frozen,
    testing::Values(Case{"norms", "relu", "v1", norms_of("v1")}, Case{"norms_gelu", "gelu", "v1", norms_of("v1")},
                    Case{"norms_v2", "relu", "v2", norms_of("v2")},
                    Case{"norms_and_stage", "relu", "v1", with(norms_of("v1"), "layer1")},
                    Case{"stages", "relu", "v1", {"conv1", "bn1", "layer1", "layer2"}},
                    Case{"stages_v2", "tanh", "v2", {"conv1", "layer1", "layer2"}},
                    Case{"backbone", "relu", "v1", {"backbone"}}, Case{"shortcut", "relu", "v1", {"*.downsample"}},
                    Case{"branch", "relu", "v1", {"layer2.0.bn2", "layer3.0.conv2"}},
                    Case{"branch_gelu", "gelu", "v1", {"layer2.0.bn2", "layer3.0.downsample.1"}},
                    Case{"middle", "tanh", "v1", {"layer2"}}, Case{"scales", "relu", "v1", {"*.bn?.weight"}},
                    Case{"head", "relu", "v1", {"fc"}}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace convoy
