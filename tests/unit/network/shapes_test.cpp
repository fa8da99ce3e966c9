// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <ostream>

#include "network/graph.hpp"
#include "network/models.hpp"
#include "unit/network/expect_error.hpp"

namespace convoy {
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.c << 'x' << shape.h << 'x' << shape.w;
}

namespace {

std::map<std::string, Shape> shapes_by_name(const Graph& graph, Index height, Index width) {
  const std::vector<Shape> shapes = infer_shapes(graph, height, width);
  std::map<std::string, Shape> named;
  for (std::size_t i = 0; i < shapes.size(); ++i) named[graph.nodes[i].name] = shapes[i];
  return named;
}

TEST(Shapes, Resnet50OnImageNet) {
  const auto shapes = shapes_by_name(build_graph({.model = "resnet50"}), 224, 224);
  EXPECT_EQ(shapes.at("input"), (Shape{3, 224, 224}));
  EXPECT_EQ(shapes.at("conv1"), (Shape{64, 112, 112}));
  EXPECT_EQ(shapes.at("maxpool"), (Shape{64, 56, 56}));
  EXPECT_EQ(shapes.at("layer1.2.add"), (Shape{256, 56, 56}));
  EXPECT_EQ(shapes.at("layer2.0.conv1"), (Shape{128, 56, 56}));
  EXPECT_EQ(shapes.at("layer2.0.conv2"), (Shape{128, 28, 28}));
  EXPECT_EQ(shapes.at("layer4.2.add"), (Shape{2048, 7, 7}));
  EXPECT_EQ(shapes.at("flatten"), (Shape{2048, 1, 1}));
  EXPECT_EQ(shapes.at("fc"), (Shape{1000, 1, 1}));
  EXPECT_EQ(shapes.at("loss"), (Shape{1, 1, 1}));
}

TEST(Shapes, FollowTheImageNotTheBuilder) {
  const Graph graph = build_graph({.model = "resnet18"});
  EXPECT_EQ(shapes_by_name(graph, 160, 129).at("layer4.1.add"), (Shape{512, 5, 5}));
  EXPECT_EQ(shapes_by_name(graph, 33, 65).at("layer1.0.add"), (Shape{64, 9, 17}));
}

TEST(Shapes, SmallStemKeepsTheImage) {
  const auto shapes =
      shapes_by_name(build_graph({.model = "resnet18", .classes = 10, .options = {{"stem", "small"}}}), 32, 32);
  EXPECT_EQ(shapes.at("layer1.1.add"), (Shape{64, 32, 32}));
  EXPECT_EQ(shapes.at("layer4.1.add"), (Shape{512, 4, 4}));
  EXPECT_EQ(shapes.count("maxpool"), 0U);
}

TEST(Shapes, ResnetCifar) {
  const auto shapes = shapes_by_name(build_graph({.model = "resnet20", .classes = 10}), 32, 32);
  EXPECT_EQ(shapes.at("layer1.2.add"), (Shape{16, 32, 32}));
  EXPECT_EQ(shapes.at("layer2.2.add"), (Shape{32, 16, 16}));
  EXPECT_EQ(shapes.at("layer3.2.add"), (Shape{64, 8, 8}));
}

TEST(Shapes, LenetOnMnist) {
  const auto shapes =
      shapes_by_name(build_graph({.model = "lenet", .classes = 10, .channels = 1, .image_size = 28}), 28, 28);
  EXPECT_EQ(shapes.at("conv1"), (Shape{20, 24, 24}));
  EXPECT_EQ(shapes.at("pool1"), (Shape{20, 12, 12}));
  EXPECT_EQ(shapes.at("conv2"), (Shape{50, 8, 8}));
  EXPECT_EQ(shapes.at("flatten"), (Shape{800, 1, 1}));
  EXPECT_EQ(shapes.at("fc1"), (Shape{500, 1, 1}));
}

TEST(Shapes, WindowsThatDontDivideAreCutOff) {
  Graph graph;
  graph.nodes.push_back({"input", Input{2}, {}, {}});
  graph.nodes.push_back({"conv", Convolution{.in = 2, .out = 3, .kernel = 3, .stride = 2, .pad = 1}, {0}, {}});
  graph.nodes.push_back({"pool", Pool{.kernel = 3, .stride = 2, .pad = 0}, {1}, {}});
  EXPECT_EQ(infer_shapes(graph, 10, 13).back(), (Shape{3, 2, 3}));  // 5 x 7 between
}

TEST(Shapes, ErrorsNameTheNode) {
  const Graph lenet = build_graph({.model = "lenet", .classes = 10, .image_size = 28});
  expect_usage_error([&] { infer_shapes(lenet, 32, 32); }, {"'fc1'", "800", "1250", "32 x 32"});
  expect_usage_error([&] { infer_shapes(lenet, 12, 28); }, {"'conv2'", "12 x 28"});
  expect_usage_error([&] { infer_shapes(lenet, 0, 28); }, {"0 x 28"});
  expect_usage_error([] { build_graph({.model = "lenet", .image_size = 14}); }, {"'pool2'", "14 x 14"});

  Graph graph;
  graph.classes = 5;
  graph.nodes.push_back({"input", Input{2}, {}, {}});
  graph.nodes.push_back({"conv", Convolution{.in = 3, .out = 4}, {0}, {}});
  expect_usage_error([&] { infer_shapes(graph, 8, 8); }, {"'conv'", "3 channels", "gets 2"});
  graph.nodes[1] = {"bn", BatchNorm{.channels = 4}, {0}, {}};
  expect_usage_error([&] { infer_shapes(graph, 8, 8); }, {"'bn'", "4 channels", "gets 2"});
  graph.nodes[1] = {"pool", GlobalAveragePool{}, {0}, {}};
  graph.nodes.push_back({"sum", Add{}, {0, 1}, {}});
  expect_usage_error([&] { infer_shapes(graph, 8, 8); }, {"'sum'", "2 x h x w", "2 x 1 x 1"});
  graph.nodes[2] = {"loss", Loss{}, {1}, {}};
  expect_usage_error([&] { infer_shapes(graph, 8, 8); }, {"'loss'", "2 values per image", "5 classes"});
}

Graph joined(const Convolution& first, const Convolution& second) {
  Graph graph{.model = "joined", .classes = 1};
  graph.nodes = {{"input", Input{3}, {}, {}},
                 {"a", first, {0}, {}},
                 {"b", second, {0}, {}},
                 {"cat", Concatenation{}, {1, 2, 1}, {}}};
  return graph;
}

TEST(Shapes, ConcatenationAddsChannels) {
  const Graph graph = joined({.in = 3, .out = 8}, {.in = 3, .out = 5});
  EXPECT_EQ(infer_shapes(graph, 6, 7).back(), (Shape{21, 6, 7}));
}

TEST(Shapes, ConcatenationNeedsOneHeightAndWidth) {
  const Graph graph = joined({.in = 3, .out = 8}, {.in = 3, .out = 5, .stride = 2});
  expect_usage_error([&] { infer_shapes(graph, 6, 8); }, {"'cat'", "h x w", "h/2 x w/2"});
}

}  // namespace
}  // namespace convoy
