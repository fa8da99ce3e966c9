// SPDX-License-Identifier: Apache-2.0
// What operations are in ONNX, and which nodes of a graph are written. tests/end_to_end/export_test.py computes the
// graphs.
#include "interchange/onnx.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/errors.hpp"
#include "support/expect_error.hpp"

namespace convoy {
namespace {

std::string text_of(const OnnxAttribute& attribute) {
  return std::visit([&](const auto& value) { return fmt::format(" {}={}", attribute.name, value); }, attribute.value);
}

/// `Conv(x, weight) group=1 -> y`, a line an operator.
std::string text_of(const auto& operation, std::size_t inputs = 1) {
  const std::string name = "node";
  const NodeInputs read{.node = name, .shapes = std::vector<Shape>(inputs, Shape{8, 4, 4}), .image = {}, .classes = 0};
  std::string text;
  for (const OnnxOperator& each : operation.onnx(read)) {
    std::vector<std::string> reads;
    for (const OnnxValue& value : each.reads)
      reads.push_back(std::visit([](const auto& what) { return fmt::format("{}", what); }, value));
    text += fmt::format("{}({})", each.type, fmt::join(reads, ", "));
    for (const OnnxAttribute& attribute : each.attributes) text += text_of(attribute);
    text += fmt::format(" -> {}\n", each.writes);
  }
  return text;
}

TEST(OnnxOperators, Convolution) {
  EXPECT_EQ(
      text_of(Convolution{
          .in = 8, .out = 4, .kernel = 1, .stride = 2, .pad = 0, .groups = 2, .bias = true, .kernel_w = 7, .pad_w = 3}),
      "Conv(x, weight, bias) kernel_shape=[1, 7] strides=[2, 2] pads=[0, 3, 0, 3] group=2 -> y\n");
  EXPECT_EQ(text_of(Convolution{.in = 8, .out = 4}),
            "Conv(x, weight) kernel_shape=[3, 3] strides=[1, 1] pads=[1, 1, 1, 1] group=1 -> y\n");
}

TEST(OnnxOperators, Pools) {
  EXPECT_EQ(text_of(Pool{.kernel = 3, .stride = 2, .pad = 1, .ceil = true}),
            "MaxPool(x) kernel_shape=[3, 3] strides=[2, 2] pads=[1, 1, 1, 1] ceil_mode=1 -> y\n");
  EXPECT_EQ(text_of(Pool{.mode = Pool::Mode::average, .count_padding = false}),
            "AveragePool(x) kernel_shape=[2, 2] strides=[2, 2] pads=[0, 0, 0, 0] count_include_pad=0 -> y\n");
}

TEST(OnnxOperators, SeveralInputs) {
  EXPECT_EQ(text_of(Concatenation{}, 3), "Concat(x, x1, x2) axis=1 -> y\n");
  EXPECT_EQ(text_of(ChannelGate{.gate = GateKind::sigmoid}, 2), "Sigmoid(x1) -> gate\nMul(x, gate) -> y\n");
}

TEST(OnnxOperators, LinearTakesImages) {
  EXPECT_EQ(text_of(Linear{.in = 128, .out = 3, .bias = false}),
            "Flatten(x) -> flat\nGemm(flat, weight) transB=1 -> y\n");
}

TEST(OnnxOperators, NothingIsLeftOfDropout) { EXPECT_EQ(text_of(Dropout{.rate = 0.5F}), ""); }

TEST(OnnxOperators, AnEvenNumberOfNeighboursIsRefused) {
  expect_error(Exit::usage, {"'node' is a local response norm over 4 channels"},
               [] { text_of(LocalResponseNorm{.size = 4}); });
}

/// input -> conv -> fc -> loss, and a head beside them that the loss doesn't read.
Graph with_auxiliary_head() {
  Graph graph{.model = "small", .classes = 2, .nodes = {}};
  graph.nodes = {
      {"input", Input{.channels = 1}, {}, {}},
      {"conv", Convolution{.in = 1, .out = 1}, {0}, {{.name = "conv.weight", .shape = {1, 1, 3, 3}}}},
      {"auxiliary", Linear{.in = 4, .out = 2, .bias = false}, {1}, {{.name = "auxiliary.weight", .shape = {2, 4}}}},
      {"fc", Linear{.in = 4, .out = 2, .bias = false}, {1}, {{.name = "fc.weight", .shape = {2, 4}}}},
      {"loss", Loss{}, {3}, {}}};
  return graph;
}

TEST(OnnxModel, HeadsThatTheLogitsDontReadAreLeftOut) {
  const Graph graph = with_auxiliary_head();
  const std::vector<float> zeros(9);
  const std::string bytes =
      onnx_model({.graph = graph, .height = 2, .width = 2, .values = [&](const std::string& name) {
                    return std::span(zeros).first(name == "conv.weight" ? 9 : 8);
                  }});
  EXPECT_NE(bytes.find("fc.weight"), std::string::npos);
  EXPECT_EQ(bytes.find("auxiliary"), std::string::npos);
}

TEST(OnnxModel, TheSizeMustFitTheNetwork) {
  const Graph graph = with_auxiliary_head();
  expect_error(Exit::usage, {"node 'auxiliary' takes 4 values but gets 9"},
               [&] { onnx_model({.graph = graph, .height = 3, .width = 3, .values = {}}); });
}

}  // namespace
}  // namespace convoy
