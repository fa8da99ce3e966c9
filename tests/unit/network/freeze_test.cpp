// SPDX-License-Identifier: Apache-2.0
#include "network/freeze.hpp"
#include "network/patterns.hpp"

#include <gtest/gtest.h>

#include "network/models.hpp"
#include "network/plan.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

using Names = std::set<std::string>;

Graph resnet(const std::string& model) {
  GraphSpec spec;
  spec.model = model;
  return build_graph(with_usual_input(spec, 10, 0, 0));
}

TEST(Freeze, PatternsNameParametersAndModules) {
  const Graph graph = resnet("resnet8");
  EXPECT_EQ(find_frozen(graph, {}), Names{});
  EXPECT_EQ(find_frozen(graph, {"conv1"}), (Names{"conv1.weight"}));
  EXPECT_EQ(find_frozen(graph, {"fc.bias"}), (Names{"fc.bias"}));
  EXPECT_EQ(find_frozen(graph, {"layer1"}),
            (Names{"layer1.0.conv1.weight", "layer1.0.conv2.weight", "layer1.0.bn1.weight", "layer1.0.bn1.bias",
                   "layer1.0.bn2.weight", "layer1.0.bn2.bias"}));
  EXPECT_EQ(find_frozen(graph, {"layer1.*.conv?", "conv1.weight"}),
            (Names{"layer1.0.conv1.weight", "layer1.0.conv2.weight", "conv1.weight"}));
  const Names all = find_frozen(graph, {"*.weight"});
  EXPECT_EQ(all.count("layer3.0.downsample.1.weight"), 1U);
  EXPECT_EQ(all.count("fc.bias"), 0U);
}

TEST(Freeze, TheBackboneIsAllButTheLastLayer) {
  for (const char* const model : {"resnet8", "vgg11_bn", "squeezenet1_1", "densenet121"}) {
    const Graph graph = resnet(model);
    Names left;
    const Names frozen = find_frozen(graph, {backbone});
    for (const Node& node : graph.nodes)
      for (const ParameterSpec& parameter : node.parameters)
        if (frozen.count(parameter.name) == 0) left.insert(parameter.name);
    ASSERT_EQ(left.size(), 2U) << model;
    EXPECT_TRUE(left.begin()->ends_with(".bias")) << *left.begin();
  }
}

TEST(Freeze, TheBackboneIsTheModuleOfThatNameIfThereIsOne) {
  Graph graph = resnet("resnet8");
  for (Node& node : graph.nodes)
    for (ParameterSpec& parameter : node.parameters)
      if (parameter.name.starts_with("layer1.0.conv")) parameter.name.replace(0, 8, "backbone");
  EXPECT_EQ(find_frozen(graph, {backbone}), (Names{"backbone.conv1.weight", "backbone.conv2.weight"}));
}

TEST(Freeze, SaysWhatIsWrong) {
  const Graph graph = resnet("resnet8");
  expect_error(Exit::usage, {"--freeze 'layer9' matches no parameter of resnet8"},
               [&] { find_frozen(graph, {"layer9"}); });
  expect_error(Exit::usage, {"its modules are conv1, bn1, layer1, layer2, layer3, fc"}, [&] {
    find_frozen(graph, {"conv1", "nothing"});
  });
  expect_error(Exit::usage, {"leaves nothing of resnet8"}, [&] { find_frozen(graph, {"*"}); });
}

TEST(Freeze, FrozenTensorsStandBehindAllOthers) {
  const Graph graph = resnet("resnet8");
  PlanSpec spec{.replicas = 2, .bucket_floats = 2000};
  const Plan all = make_plan(graph, spec);
  spec.frozen = {"conv1", "bn1", "layer2"};
  const Plan plan = make_plan(graph, spec);
  EXPECT_EQ(plan.digest, all.digest);
  Index end = 0;
  bool behind = false;
  for (const Parameter& row : plan.table.rows) {
    EXPECT_EQ(row.range.begin, end) << row.name;
    EXPECT_TRUE(row.trainable || row.name == "conv1.weight" || row.name.starts_with("bn1.") ||
                row.name.starts_with("layer2."))
        << row.name;
    behind = behind || !row.trainable;
    EXPECT_EQ(row.trainable, !behind) << row.name;
    end = align_floats(row.range.end());
  }
  EXPECT_EQ(end, plan.table.parameters.count);
  EXPECT_EQ(plan.table.parameters, all.table.parameters);
  EXPECT_GT(plan.table.frozen_floats, 0);
  Index at = 0;
  for (const Range& bucket : plan.buckets) {
    EXPECT_EQ(bucket.begin, at);
    at = bucket.end();
  }
  EXPECT_EQ(at, plan.table.flags.end());
  EXPECT_EQ(plan.table.statistics.begin, plan.table.trained_floats());
  for (const NormStatistics& norm : plan.table.norms) {
    EXPECT_EQ(norm.frozen, norm.name == "bn1" || norm.name.starts_with("layer2.")) << norm.name;
    EXPECT_EQ(norm.frozen, norm.mean.begin >= plan.table.statistics.count) << norm.name;
  }
  EXPECT_EQ(plan.table.running_floats(), all.table.statistics.count);

  // A norm of which a part trains takes the batch's statistics.
  spec.frozen = {"*.bn?.weight"};
  for (const NormStatistics& norm : make_plan(graph, spec).table.norms) EXPECT_FALSE(norm.frozen) << norm.name;
}

TEST(Freeze, ANetworkMayFixParameters) {
  const Graph graph = resnet("airbench94");
  const Names fixed = find_frozen(graph, {});
  EXPECT_EQ(fixed, (Names{"whiten.weight", "layers.1.norm1.weight", "layers.1.norm2.weight", "layers.2.norm1.weight",
                          "layers.2.norm2.weight", "layers.3.norm1.weight", "layers.3.norm2.weight"}));
  const Plan plan = make_plan(graph, {});
  for (const Parameter& row : plan.table.rows) EXPECT_EQ(row.trainable, fixed.count(row.name) == 0) << row.name;
  for (const NormStatistics& norm : plan.table.norms) EXPECT_FALSE(norm.frozen) << norm.name;
  // Forward, weight gradients of all but the whitening, data gradients of all behind it: its bias trains.
  const Cost cost = cost_of(graph, 32, 32);
  const double whitening = 31 * 31 * 24 * 12;
  EXPECT_EQ(cost.training_flops, 2 * (3 * (cost.macs - whitening) + whitening));
}

TEST(Freeze, CostsNoGradients) {
  const Graph graph = resnet("resnet8");
  const Cost all = cost_of(graph, 32, 32), head = cost_of(graph, 32, 32, find_frozen(graph, {backbone}));
  EXPECT_EQ(head.parameters, all.parameters);
  EXPECT_EQ(head.macs, all.macs);
  EXPECT_EQ(head.training_flops, 2 * (all.macs + 64 * 10));  // the weight gradient of the last layer alone
}

}  // namespace
}  // namespace convoy
