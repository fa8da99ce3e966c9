// SPDX-License-Identifier: Apache-2.0
#include "network/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "network/models.hpp"
#include "support/expect_error.hpp"
#include "unit/network/expect_error.hpp"

namespace convoy {
namespace {

Index product(const std::vector<Index>& shape) {
  Index count = 1;
  for (const Index side : shape) count *= side;
  return count;
}

struct Case {
  std::string model, version;
  int replicas;
  Index bucket_floats;
  bool sync_bn;
};

class PlanLaws : public testing::TestWithParam<Case> {
 protected:
  Plan plan_ = make_plan(
      build_graph({.model = GetParam().model,
                   .classes = 10,
                   .image_size = 32,
                   .options = {{"resnet-version", GetParam().version}}}),
      {.replicas = GetParam().replicas, .bucket_floats = GetParam().bucket_floats, .sync_bn = GetParam().sync_bn});
  const ParameterTable& table_ = plan_.table;
};

TEST_P(PlanLaws, TensorsAreAlignedAndDenseInTheOrderOfBackward) {
  Index at = 0;
  NodeId last_node = static_cast<NodeId>(plan_.graph.nodes.size());
  for (const Parameter& row : table_.rows) {
    EXPECT_EQ(row.range.begin % 16, 0) << row.name;
    EXPECT_EQ(row.range.begin, align_floats(at)) << row.name;
    EXPECT_EQ(row.range.count, product(row.shape)) << row.name;
    EXPECT_LE(row.node, last_node) << row.name;
    if (row.node == last_node) {
      EXPECT_TRUE(row.name.ends_with(".bias")) << row.name << " must follow its weight";
    }
    last_node = row.node;
    at = row.range.end();
  }
  EXPECT_EQ(table_.parameters, (Range{0, align_floats(at)}));
}

TEST_P(PlanLaws, EveryParameterOfTheGraphStandsOnce) {
  std::size_t count = 0;
  for (const Node& node : plan_.graph.nodes)
    for (const ParameterSpec& parameter : node.parameters) {
      ++count;
      const Parameter* row = table_.find(parameter.name);
      ASSERT_NE(row, nullptr) << parameter.name;
      EXPECT_EQ(row->shape, parameter.shape);
      EXPECT_EQ(row->kind, parameter.kind);
      EXPECT_EQ(&plan_.graph.nodes[static_cast<std::size_t>(row->node)], &node);
    }
  EXPECT_EQ(table_.rows.size(), count);
  EXPECT_EQ(table_.find("layer9.conv1.weight"), nullptr);
}

TEST_P(PlanLaws, TailHoldsStatisticsThenFlagsThenExchange) {
  Index at = 0, exchange = 0;
  std::size_t norm = 0;
  for (std::size_t node = 0; node < plan_.graph.nodes.size(); ++node) {
    const auto* attributes = as<BatchNorm>(plan_.graph.nodes[node]);
    if (!attributes) continue;
    ASSERT_LT(norm, table_.norms.size());
    const NormStatistics& row = table_.norms[norm++];
    const Index padded = align_floats(attributes->channels);
    EXPECT_EQ(row.node, static_cast<NodeId>(node));
    EXPECT_EQ(row.name, plan_.graph.nodes[node].name);
    EXPECT_EQ(row.mean, (Range{at, attributes->channels}));
    EXPECT_EQ(row.variance, (Range{at + padded, attributes->channels}));
    at += 2 * padded;
    exchange += 8 * padded;
  }
  EXPECT_EQ(norm, table_.norms.size());
  EXPECT_EQ(table_.statistics, (Range{table_.parameters.end(), at}));
  EXPECT_EQ(table_.flags, (Range{table_.statistics.end(), GetParam().replicas}));
  EXPECT_EQ(table_.exchange, (Range{align_floats(table_.flags.end()), GetParam().sync_bn ? exchange : 0}));
  EXPECT_EQ(table_.block(), table_.exchange.end());
  EXPECT_EQ(plan_.sync_bn, GetParam().sync_bn);
}

TEST_P(PlanLaws, BucketsCoverParametersAndTailAndCloseAtTheFirstBorderPastTheirSize) {
  const Index wanted = GetParam().bucket_floats;
  Index at = 0;
  for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
    const Range bucket = plan_.buckets[i];
    ASSERT_EQ(bucket.begin, at);
    ASSERT_GT(bucket.count, 0);
    at = bucket.end();
    if (i + 1 == plan_.buckets.size()) break;
    const auto next = std::find_if(table_.rows.begin(), table_.rows.end(),
                                   [&](const Parameter& row) { return row.range.begin == bucket.end(); });
    ASSERT_NE(next, table_.rows.end()) << "bucket " << i << " ends inside a tensor";
    EXPECT_GE(bucket.count, wanted);
    EXPECT_LT(std::prev(next)->range.begin - bucket.begin, wanted) << "bucket " << i << " could end earlier";
  }
  EXPECT_EQ(at, table_.flags.end());
  EXPECT_LT(plan_.buckets.back().begin, table_.parameters.end()) << "the tail must not travel alone";
}

TEST_P(PlanLaws, LastUseIsTheLastReader) {
  const auto& nodes = plan_.graph.nodes;
  ASSERT_EQ(plan_.last_use.size(), nodes.size());
  ASSERT_EQ(plan_.schedule.size(), nodes.size());
  std::vector<NodeId> expected(nodes.size(), -1);
  for (const NodeId reader : plan_.schedule)
    for (const NodeId from : nodes[static_cast<std::size_t>(reader)].inputs) {
      EXPECT_LT(from, reader);
      expected[static_cast<std::size_t>(from)] = reader;
    }
  expected.back() = static_cast<NodeId>(nodes.size() - 1);
  EXPECT_EQ(plan_.last_use, expected);
}

INSTANTIATE_TEST_SUITE_P(Models, PlanLaws,
                         testing::Values(Case{"mlp", "", 1, 1, false}, Case{"mlp", "", 3, 1 << 21, false},
                                         Case{"lenet", "", 17, 1000, false}, Case{"resnet20", "", 1, 1, false},
                                         Case{"resnet20", "", 4, 1 << 14, true},
                                         Case{"resnet32", "v2", 16, 50'000, false},
                                         Case{"resnet50", "", 7, 1 << 21, true},
                                         Case{"resnet50", "", 1, 1 << 30, false}),
                         [](const auto& each) { return each.param.model + std::to_string(each.index); });

TEST(Plan, OrderOfASmallNetwork) {
  const Plan plan = make_plan(
      build_graph({.model = "mlp", .classes = 3, .channels = 1, .image_size = 5, .options = {{"hidden", "2"}}}),
      {.replicas = 2, .bucket_floats = 16});
  ASSERT_EQ(plan.table.rows.size(), 4U);
  EXPECT_EQ(plan.table.rows[0].name, "fc2.weight");
  EXPECT_EQ(plan.table.rows[0].range, (Range{0, 6}));
  EXPECT_EQ(plan.table.rows[1].name, "fc2.bias");
  EXPECT_EQ(plan.table.rows[1].range, (Range{16, 3}));
  EXPECT_EQ(plan.table.rows[2].name, "fc1.weight");
  EXPECT_EQ(plan.table.rows[2].range, (Range{32, 50}));
  EXPECT_EQ(plan.table.rows[3].name, "fc1.bias");
  EXPECT_EQ(plan.table.rows[3].range, (Range{96, 2}));
  EXPECT_EQ(plan.table.flags, (Range{112, 2}));
  EXPECT_EQ(plan.table.block(), 128);
  EXPECT_EQ(plan.buckets, (std::vector<Range>{{0, 16}, {16, 16}, {32, 64}, {96, 18}}));
}

TEST(Plan, ShortcutsLiveUntilTheirSum) {
  const Plan plan = make_plan(build_graph({.model = "resnet18"}), {});
  const auto id = [&](const std::string& name) {
    const auto& nodes = plan.graph.nodes;
    return std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name == name; }) - nodes.begin();
  };
  EXPECT_EQ(plan.last_use.at(static_cast<std::size_t>(id("maxpool"))), id("layer1.0.add"));
  EXPECT_EQ(plan.last_use.at(static_cast<std::size_t>(id("layer1.1.act2"))), id("layer2.0.downsample.0"));
  EXPECT_EQ(plan.last_use.at(static_cast<std::size_t>(id("conv1"))), id("bn1"));
}

TEST(Plan, DecayGoesByKind) {
  const Plan plan = make_plan(build_graph({.model = "resnet20"}),
                              {.weight_decay = 0.5F, .norm_weight_decay = 0.25F, .bias_weight_decay = 0.125F});
  EXPECT_EQ(plan.table.find("layer1.0.conv1.weight")->decay, 0.5F);
  EXPECT_EQ(plan.table.find("fc.weight")->decay, 0.5F);
  EXPECT_EQ(plan.table.find("fc.bias")->decay, 0.125F);
  EXPECT_EQ(plan.table.find("bn1.weight")->decay, 0.25F);
  EXPECT_EQ(plan.table.find("bn1.bias")->decay, 0.25F);
  for (const Parameter& row : plan.table.rows) {
    EXPECT_TRUE(row.trainable);
    EXPECT_EQ(row.rate_multiplier, 1);
  }
}

TEST(Plan, RatesGoByPatternsAndTheLastOneHolds) {
  const Graph graph = build_graph({.model = "resnet20"});
  const Plan plan =
      make_plan(graph, {.rate_multipliers = {{"*.bn?.bias", 64}, {"layer1", 0.5F, 7}, {"layer1.0.bn1.bias", 3}}});
  const auto expect = [&](const char* name, float factor, Index ends) {
    EXPECT_EQ(plan.table.find(name)->rate_multiplier, factor) << name;
    EXPECT_EQ(plan.table.find(name)->rate_ends, ends) << name;
  };
  expect("layer2.0.bn1.bias", 64, never);
  expect("layer1.1.bn2.bias", 0.5F, 7);
  expect("layer1.0.conv1.weight", 0.5F, 7);
  expect("layer1.0.bn1.bias", 3, never);
  expect("fc.bias", 1, never);
  EXPECT_EQ(plan.digest, make_plan(graph, {}).digest);
  const Plan body = make_plan(graph, {.rate_multipliers = {{"backbone", 0.125F}}});
  for (const Parameter& row : body.table.rows)
    EXPECT_EQ(row.rate_multiplier, row.name.starts_with("fc.") ? 1 : 0.125F) << row.name;
  expect_error(Exit::usage, {"--lr-mult 'layer7' matches no parameter of resnet20"}, [&] {
    make_plan(graph, {.rate_multipliers = {{"layer7", 2}}});
  });
}

TEST(Plan, DecaysGoByPatternsAndTheLastOneHolds) {
  const Graph graph = build_graph({.model = "resnet20"});
  const PlanSpec spec{.weight_decay = 0.5F,
                      .norm_weight_decay = 0.25F,
                      .decay_multipliers = {{"*.bn?", 4}, {"layer1", 0.5F}, {"layer1.0.conv1", 0}, {"fc", 0.25F}}};
  const Plan plan = make_plan(graph, spec);
  for (const auto& [name, decay] : {std::pair{"conv1.weight", 0.5F},
                                    {"layer2.0.bn1.bias", 1.0F},
                                    {"layer1.1.bn2.bias", 0.125F},
                                    {"layer1.1.conv2.weight", 0.25F},
                                    {"layer1.0.conv1.weight", 0.0F},
                                    {"fc.weight", 0.125F},
                                    {"fc.bias", 0.0F}})
    EXPECT_EQ(plan.table.find(name)->decay, decay) << name;
  EXPECT_EQ(plan.digest, make_plan(graph, {}).digest);
  expect_error(Exit::usage, {"--decay-mult 'layer7' matches no parameter of resnet20"}, [&] {
    make_plan(graph, {.decay_multipliers = {{"layer7", 2}}});
  });
}

TEST(Digest, StaysWhereTheModelStays) {
  const GraphSpec spec{.model = "resnet20", .classes = 10};
  const std::uint64_t digest = make_plan(build_graph(spec), {}).digest;
  EXPECT_EQ(make_plan(build_graph(spec), {}).digest, digest);
  EXPECT_EQ(
      make_plan(build_graph(spec), {.replicas = 9, .bucket_floats = 5, .weight_decay = 1, .sync_bn = true}).digest,
      digest);
  GraphSpec other = spec;
  other.initialiser = "normal";
  other.label_smoothing = 0.1F;
  other.image_size = 64;
  EXPECT_EQ(make_plan(build_graph(other), {}).digest, digest);
}

TEST(Digest, ChangesWithTheFunction) {
  const GraphSpec spec{.model = "resnet20", .classes = 10};
  std::vector<GraphSpec> others(6, spec);
  others[0].classes = 11;
  others[1].norm_epsilon = 1.0001e-5F;
  others[2].activation = "leaky_relu";
  others[3].options["resnet-version"] = "v2";
  others[4].model = "resnet32";
  others[5].norm_momentum = 0.2F;
  std::vector<std::uint64_t> digests{make_plan(build_graph(spec), {}).digest};
  for (const GraphSpec& other : others) digests.push_back(make_plan(build_graph(other), {}).digest);
  // Same parameters, other function: v1 and v1.5 differ in strides only.
  digests.push_back(make_plan(build_graph({.model = "resnet50", .options = {{"resnet-version", "v1"}}}), {}).digest);
  digests.push_back(make_plan(build_graph({.model = "resnet50", .options = {{"resnet-version", "v1.5"}}}), {}).digest);
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

TEST(Digest, ChangesWithTheWiring) {
  Graph graph = build_graph({.model = "resnet20"});
  const std::uint64_t digest = make_plan(graph, {}).digest;
  const auto id = [&](const std::string& name) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == name; }) -
           graph.nodes.begin();
  };
  Node& sum = graph.nodes[static_cast<std::size_t>(id("layer1.1.add"))];
  ASSERT_EQ(sum.inputs.at(1), id("layer1.0.act2"));
  sum.inputs[1] = static_cast<NodeId>(id("act"));
  EXPECT_NE(make_plan(graph, {}).digest, digest);
}

TEST(Plan, RefusesImpossibleSpecs) {
  const Graph graph = build_graph({.model = "mlp"});
  expect_usage_error([&] { make_plan(graph, {.replicas = 0}); }, {"0 replicas"});
  expect_usage_error([&] { make_plan(graph, {.bucket_floats = 0}); }, {"0 floats"});
}

}  // namespace
}  // namespace convoy
