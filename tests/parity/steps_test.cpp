// SPDX-License-Identifier: Apache-2.0
// Three training steps of each family of networks, by program and updater, against PyTorch's fp64: the second and the
// third see what the update made of weights, momentum and running statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/golden.hpp"
#include "support/rounding.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Values;

double norm_of(const Values& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

double projection_of(const std::string& name, const Values& values) {
  const Values direction = formula_values(name + "/projection", static_cast<Index>(values.size()));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * direction[i];
  return sum;
}

Values slice(const std::vector<float>& set, Index begin, Index count) {
  return {set.begin() + begin, set.begin() + begin + count};
}

/// The largest of some deviations, and whose it is.
struct Worst {
  double value = 0;
  std::string name;
  void add(const std::string& of, double deviation) {
    if (!(deviation <= value)) value = deviation, name = of;  // also takes NaN
  }
};

class GoldenTraining : public testing::TestWithParam<const char*> {
 protected:
  struct Trained {
    Plan plan;
    SetLayout layout;
    Values start;            ///< parameters
    std::vector<float> set;  ///< after the last step
    std::vector<double> losses;
  };
  static Trained train(const GoldenSteps& golden) {
    const GraphSpec& graph = golden.network.graph;
    const Index n = golden.network.n, size = graph.image_size, channels = graph.channels;
    const auto backend = make_test_backend();
    Trained trained{.plan = make_plan(build_graph(graph), {.weight_decay = golden.decay})};
    const ParameterTable& table = trained.plan.table;
    trained.layout = backend->layout(trained.plan, {});
    trained.start = formula_parameters(table);
    std::vector<float> running(static_cast<std::size_t>(table.running_floats()));
    initialise_statistics(table, running.data());
    const Values statistics(running.begin(), running.end());
    CompileSpec spec;
    spec.samples = n;
    spec.height = spec.width = size;
    spec.input = formula_input(size, size, channels);
    ProgramBench bench(*backend, trained.plan, spec, trained.start, &statistics);
    const auto updater = backend->compile(trained.plan, OptimiserSpec{.rule = Rule::sgd});
    const FencedBlock arena(*backend, updater->arena_floats(), "the updater's arena");
    updater->bind(arena.data());
    for (std::size_t step = 0; step < golden.rates.size(); ++step) {
      StepParams params = golden.network.step;
      params.step += static_cast<Index>(step);
      params.learning_rate = golden.rates[step];
      params.options.value[0] = golden.momentum;
      backend->set_step(params);
      const std::string batch = std::to_string(step);
      Batch of_step;
      of_step.scale = 1.0F / static_cast<float>(n);
      bench.feed(of_step, formula_images("x" + batch, n * size * size * channels),
                 formula_samples("labels" + batch, n, graph.classes, golden.network.mixed));
      bench.launch_all();
      updater->launch(bench.set(), bench.gradient_block());
      double sum = 0;
      for (const float loss : bench.loss()) sum += loss;
      trained.losses.push_back(sum / static_cast<double>(n));
    }
    trained.set = download(*backend, bench.set().block, trained.layout.count());
    arena.expect_guards();
    return trained;
  }

  /// Of each tensor; and `limit` of the median over tensors of the errors of their changes, which a few noisy ones
  /// don't move.
  static void expect_changes(const GoldenSteps& golden, const Trained& trained, double limit) {
    std::map<std::string, const Parameter*> by_name;
    for (const Parameter& row : trained.plan.table.rows)
      if (row.trainable) by_name[row.name] = &row;
    ASSERT_EQ(golden.changes.size(), by_name.size());
    Worst of_weights;
    std::vector<double> of_changes;
    auto expected = golden.changes.begin();
    for (const auto& [name, row] : by_name) {
      const Values weights = slice(trained.set, trained.layout.values.begin + row->range.begin, row->range.count);
      Values change = weights;
      for (std::size_t i = 0; i < change.size(); ++i)
        change[i] -= trained.start[static_cast<std::size_t>(row->range.begin) + i];
      const double error = std::abs(projection_of(name, change) - *expected++);
      of_weights.add(name, error / norm_of(weights));
      // Each step rounds a weight, and the momentum that is added to it.
      of_changes.push_back(error / (norm_of(change) + 4 * fp32_unit * norm_of(weights)));
    }
    std::nth_element(of_changes.begin(), of_changes.begin() + static_cast<std::ptrdiff_t>(of_changes.size() / 2),
                     of_changes.end());
    const double median = of_changes[of_changes.size() / 2];
    std::printf("weights %.1e (%s), median of changes %.1e\n", of_weights.value, of_weights.name.c_str(), median);
    EXPECT_LE(of_weights.value, 1e-4) << of_weights.name;
    EXPECT_LE(median, limit);
  }

  /// Means are measured by the spread of their channels.
  static void expect_statistics(const GoldenSteps& golden, const Trained& trained, double limit) {
    std::map<std::string, std::pair<Values, double>> by_name;
    for (const NormStatistics& norm : trained.plan.table.norms) {
      const auto of = [&](Range range) {
        return slice(trained.set, trained.layout.statistics.begin + range.begin, range.count);
      };
      double variances = 0;
      for (const double variance : of(norm.variance)) variances += variance;
      by_name[norm.name + ".running_mean"] = {of(norm.mean), std::sqrt(variances)};
      by_name[norm.name + ".running_var"] = {of(norm.variance), norm_of(of(norm.variance))};
    }
    ASSERT_EQ(golden.statistics.size(), by_name.size());
    Worst worst;
    auto expected = golden.statistics.begin();
    for (const auto& [name, found] : by_name)
      worst.add(name, std::abs(projection_of(name, found.first) - *expected++) / found.second);
    std::printf("statistics %.1e (%s), limit %.1e\n", worst.value, worst.name.c_str(), limit);
    EXPECT_LE(worst.value, limit) << worst.name;
  }
};

TEST_P(GoldenTraining, ThreeStepsEqualPyTorch) {
  const GoldenSteps golden = load_golden_steps(GetParam());
  const Trained trained = train(golden);
  // The deep ones, of 94 to 244 convolutions, multiply what rounding leaves.
  const GoldenNetwork& network = golden.network;
  const reference::Tensor shape(network.n, network.graph.channels, network.graph.image_size, network.graph.image_size);
  const std::string name = GetParam();
  const bool deep = name.starts_with("inception_v") || name.starts_with("inception_resnet");
  const double limit = deep ? winograd_gain * rounding_bound(trained.plan.graph, shape) : 1e-4;
  ASSERT_EQ(golden.losses.size(), trained.losses.size());
  for (std::size_t step = 0; step < golden.losses.size(); ++step) {
    std::printf("loss %.6f, of PyTorch %.6f, limit %.1e\n", trained.losses[step], golden.losses[step], limit);
    EXPECT_NEAR(trained.losses[step], golden.losses[step], limit * golden.losses[step]) << "step " << step;
  }
  expect_changes(golden, trained, deep ? 1e-2 : 2e-3);
  expect_statistics(golden, trained, limit);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTraining,
                         testing::Values("lenet", "mlp", "alexnet", "alexnet_ray", "alexnet_owt", "vgg11", "vgg11_bn",
                                         "resnet20_tanh", "resnet32_v2_tanh", "resnet20", "wrn16_4", "resnet18",
                                         "resnet50", "resnext50_32x4d", "wide_resnet50_2", "seresnet50", "densenet121",
                                         "googlenet", "googlenet_aux", "inception_v3", "inception_v3_aux",
                                         "inception_v4", "inception_resnet_v2", "inception_bn", "squeezenet1_1",
                                         "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0",
                                         "mnasnet0_5", "efficientnet_v2_s", "regnet_y_400mf", "airbench94"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace convoy
