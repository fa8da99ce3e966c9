// SPDX-License-Identifier: Apache-2.0
// How residual blocks are wired, in both orders.
#include <gtest/gtest.h>

#include <algorithm>

#include "network/models.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

const Node& node_named(const Graph& graph, const std::string& name) {
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == name; });
  if (node == graph.nodes.end()) throw std::runtime_error("no node " + name);
  return *node;
}

/// Names of what a node reads.
std::vector<std::string> read_by(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const NodeId from : node_named(graph, name).inputs)
    names.push_back(graph.nodes[static_cast<std::size_t>(from)].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Residual, PostActivationBlock) {
  const Graph graph = build_graph({.model = "resnet50"});
  EXPECT_EQ(read_by(graph, "layer2.0.conv1"), Names{"layer1.2.act3"});
  EXPECT_EQ(read_by(graph, "layer2.0.conv2"), Names{"layer2.0.act1"});
  EXPECT_EQ(read_by(graph, "layer2.0.bn3"), Names{"layer2.0.conv3"});
  EXPECT_EQ(read_by(graph, "layer2.0.downsample.0"), Names{"layer1.2.act3"});
  EXPECT_EQ(read_by(graph, "layer2.0.add"), (Names{"layer2.0.bn3", "layer2.0.downsample.1"}));
  EXPECT_EQ(read_by(graph, "layer2.0.act3"), Names{"layer2.0.add"});
  EXPECT_EQ(read_by(graph, "layer2.1.add"), (Names{"layer2.1.bn3", "layer2.0.act3"}));
  EXPECT_EQ(read_by(graph, "layer1.0.add"), (Names{"layer1.0.bn3", "layer1.0.downsample.1"})) << "64 -> 256 channels";
  EXPECT_EQ(read_by(graph, "avgpool"), Names{"layer4.2.act3"});
}

TEST(Residual, PreActivationBlock) {
  const Graph graph = build_graph(
      {.model = "resnet32", .classes = 10, .options = {{"resnet-version", "v2"}}, .activation = "leaky_relu"});
  EXPECT_EQ(read_by(graph, "layer1.0.bn1"), Names{"conv1"}) << "the stem has no norm of its own";
  EXPECT_EQ(read_by(graph, "layer1.0.add"), (Names{"layer1.0.conv2", "conv1"}));
  EXPECT_EQ(read_by(graph, "layer2.0.bn1"), Names{"layer1.4.add"});
  EXPECT_EQ(read_by(graph, "layer2.0.act1"), Names{"layer2.0.bn1"});
  EXPECT_EQ(read_by(graph, "layer2.0.conv1"), Names{"layer2.0.act1"});
  EXPECT_EQ(read_by(graph, "layer2.0.conv2"), Names{"layer2.0.act2"});
  EXPECT_EQ(read_by(graph, "layer2.0.downsample.0"), Names{"layer2.0.act1"}) << "projects the activated input";
  EXPECT_EQ(read_by(graph, "layer2.0.add"), (Names{"layer2.0.conv2", "layer2.0.downsample.0"}));
  EXPECT_EQ(read_by(graph, "layer2.1.add"), (Names{"layer2.1.conv2", "layer2.0.add"}))
      << "nothing on the identity path";
  EXPECT_EQ(read_by(graph, "bn"), Names{"layer3.4.add"});
  EXPECT_EQ(read_by(graph, "avgpool"), Names{"act"});
  EXPECT_FLOAT_EQ(as<Activation>(node_named(graph, "act"))->slope, 0.1F);
}

TEST(Residual, ProjectionsStandOnlyWhereTheShapeChanges) {
  const auto count = [](const Graph& graph) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& n) { return n.name.ends_with("downsample.0"); });
  };
  EXPECT_EQ(count(build_graph({.model = "resnet18"})), 3);
  EXPECT_EQ(count(build_graph({.model = "resnet50"})), 4);
  EXPECT_EQ(count(build_graph({.model = "resnet20"})), 2);
  EXPECT_EQ(count(build_graph({.model = "resnet164"})), 3);
}

TEST(Residual, VersionPlacesTheStride) {
  const auto strides = [](const GraphSpec& spec) {
    const Graph graph = build_graph(spec);
    const auto stride = [&](const char* name) { return as<Convolution>(node_named(graph, name))->stride; };
    return std::vector<int>{stride("layer2.0.conv1"), stride("layer2.0.conv2"), stride("layer2.1.conv1"),
                            stride("layer1.0.conv1"), stride("layer2.0.downsample.0")};
  };
  using Strides = std::vector<int>;
  EXPECT_EQ(strides({.model = "resnet50", .options = {{"resnet-version", "v1"}}}), (Strides{2, 1, 1, 1, 2}));
  EXPECT_EQ(strides({.model = "resnet50", .options = {{"resnet-version", "v1.5"}}}), (Strides{1, 2, 1, 1, 2}));
  EXPECT_EQ(strides({.model = "resnet50", .options = {{"resnet-version", "v2"}}}), (Strides{1, 2, 1, 1, 2}));
  EXPECT_EQ(strides({.model = "resnet18"}), (Strides{2, 1, 1, 1, 2}));
  EXPECT_EQ(strides({.model = "resnet164"}), (Strides{2, 1, 1, 1, 2}));
  EXPECT_EQ(strides({.model = "resnet164", .options = {{"resnet-version", "v1.5"}}}), (Strides{1, 2, 1, 1, 2}));
}

TEST(Residual, DepthCountsTheConvolutionsAndTheLinearLayer) {
  const auto depth = [](const char* model) {
    int layers = 0;
    for (const Node& node : build_graph({.model = model}).nodes)
      layers += (as<Convolution>(node) || as<Linear>(node)) && !node.name.ends_with("downsample.0");
    return layers;
  };
  EXPECT_EQ(depth("resnet8"), 8);
  EXPECT_EQ(depth("resnet18"), 18);
  EXPECT_EQ(depth("resnet32"), 32);
  EXPECT_EQ(depth("resnet29"), 29);
  EXPECT_EQ(depth("resnet152"), 152);
  EXPECT_EQ(depth("resnet50_cifar"), 50);
  EXPECT_EQ(depth("resnet101_cifar"), 101);
  EXPECT_EQ(depth("resnet110"), 110);
  EXPECT_EQ(depth("resnet110_bottleneck"), 110);
  EXPECT_EQ(depth("resnet164"), 164);
}

TEST(Residual, AmbiguousDepthsAreToldApart) {
  const auto is_bottleneck = [](const char* model) {
    const Graph graph = build_graph({.model = model});
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& n) { return n.name == "layer1.0.conv3"; });
  };
  const auto stages = [](const char* model) {
    const Graph graph = build_graph({.model = model});
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.name == "layer4.0.conv1"; })
               ? 4
               : 3;
  };
  EXPECT_FALSE(is_bottleneck("resnet110"));
  EXPECT_TRUE(is_bottleneck("resnet110_bottleneck"));
  EXPECT_TRUE(is_bottleneck("resnet164"));
  EXPECT_FALSE(is_bottleneck("resnet50_cifar"));
  EXPECT_EQ(stages("resnet50"), 4);
  EXPECT_EQ(stages("resnet50_cifar"), 3);
}

TEST(Residual, ZeroInitEndsEveryBranchWithZero) {
  const auto zeros = [](const GraphSpec& spec) {
    Names names;
    for (const Node& node : build_graph(spec).nodes)
      for (const ParameterSpec& parameter : node.parameters)
        if (parameter.initialiser.fill == Fill::zeros &&
            (parameter.kind == Kind::norm_scale || parameter.kind == Kind::weight))
          names.push_back(parameter.name);
    return names;
  };
  EXPECT_EQ(zeros({.model = "resnet20"}), Names{});
  EXPECT_EQ(zeros({.model = "resnet8", .options = {{"zero-init-residual", "true"}}}),
            (Names{"layer1.0.bn2.weight", "layer2.0.bn2.weight", "layer3.0.bn2.weight"}));
  // A norm before the last ReLU must not start at zero: no gradient would ever pass it.
  EXPECT_EQ(zeros({.model = "resnet8", .options = {{"resnet-version", "v2"}, {"zero-init-residual", "true"}}}),
            (Names{"layer1.0.conv2.weight", "layer2.0.conv2.weight", "layer3.0.conv2.weight"}));
  EXPECT_EQ(zeros({.model = "resnet50", .options = {{"zero-init-residual", "true"}}}).size(), 16U);
  EXPECT_EQ(zeros({.model = "resnet50", .options = {{"zero-init-residual", "true"}}}).front(), "layer1.0.bn3.weight");
}

}  // namespace
}  // namespace convoy
