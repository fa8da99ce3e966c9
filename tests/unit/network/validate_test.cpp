// SPDX-License-Identifier: Apache-2.0
// Each test breaks one rule of a valid graph and demands that make_plan names the place.
#include <gtest/gtest.h>

#include "network/models.hpp"
#include "network/plan.hpp"
#include "unit/network/expect_error.hpp"

namespace convoy {
namespace {

class Validate : public testing::Test {
 protected:
  // 0 input, 1 conv1, 2 bn1, 3 act, 4 layer1.0.conv1 ...
  Graph graph_ = build_graph({.model = "resnet8", .classes = 10});

  void expect_error(const std::vector<std::string>& parts) const {
    expect_usage_error([&] { make_plan(graph_, {}); }, parts);
  }
};

TEST_F(Validate, AcceptsTheGraphAsItIs) { EXPECT_NO_THROW(make_plan(graph_, {})); }

TEST_F(Validate, TopologicalOrder) {
  graph_.nodes[2].inputs = {3};
  expect_error({"'bn1'", "'act'", "topological"});
  graph_.nodes[2].inputs = {2};
  expect_error({"'bn1' reads 'bn1'"});
}

TEST_F(Validate, UnknownInput) {
  graph_.nodes[2].inputs = {1000};
  expect_error({"'bn1'", "1000", "exist"});
  graph_.nodes[2].inputs = {-1};
  expect_error({"'bn1'", "-1", "exist"});
}

TEST_F(Validate, NumberOfInputs) {
  graph_.nodes[2].inputs = {1, 1};
  expect_error({"'bn1' reads 2 nodes"});
  graph_.nodes[2].inputs = {};
  expect_error({"'bn1' reads 0 nodes"});
}

TEST_F(Validate, ConcatenationReadsTwoOrMore) {
  graph_.nodes[3].attributes = Concatenation{};
  expect_error({"reads 1 nodes", "concatenation reads 2 or more"});
  graph_.nodes[3].inputs = {2, 2, 1};
  EXPECT_NO_THROW(make_plan(graph_, {}));
}

TEST_F(Validate, UnreadNode) {
  graph_.nodes[3].inputs = {1};  // around the norm
  expect_error({"nothing reads", "'bn1'"});
}

TEST_F(Validate, NothingReadsALoss) {
  graph_.nodes.insert(graph_.nodes.end() - 1, {"early", Loss{.weight = 0.5F}, graph_.nodes.back().inputs, {}});
  EXPECT_NO_THROW(make_plan(graph_, {})) << "that of an auxiliary head";
  graph_.nodes.back().inputs = {static_cast<NodeId>(graph_.nodes.size()) - 2};
  expect_error({"reads 'early'", "is a loss"});
  graph_.nodes.pop_back();
  graph_.nodes.push_back({"end", Flatten{}, graph_.nodes.back().inputs, {}});
  expect_error({"'end'", "the last node must be the loss"});
}

TEST_F(Validate, DuplicateNames) {
  Graph copy = graph_;
  graph_.nodes[3].name = "bn1";
  expect_error({"two nodes", "'bn1'"});
  graph_ = copy;
  graph_.nodes[4].parameters[0].name = "conv1.weight";
  expect_error({"two parameters", "'conv1.weight'", "'layer1.0.conv1'"});
}

TEST_F(Validate, ParametersFitTheOperation) {
  Graph copy = graph_;
  graph_.nodes[1].parameters[0].shape = {16, 3, 3, 5};
  expect_error({"'conv1.weight'", "'conv1'"});
  graph_ = copy;
  graph_.nodes[2].parameters[0].kind = Kind::weight;
  expect_error({"'bn1.weight'", "'bn1'"});
  graph_ = copy;
  graph_.nodes[2].parameters.pop_back();
  expect_error({"'bn1' has 1 parameters", "takes 2"});
  graph_ = copy;
  std::get<Convolution>(graph_.nodes[1].attributes).bias = true;
  expect_error({"'conv1' has 1 parameters", "takes 2"});
}

TEST_F(Validate, ImpossibleAttributes) {
  const Graph copy = graph_;
  std::get<Convolution>(graph_.nodes[1].attributes).groups = 2;
  expect_error({"'conv1' can't be", "groups 2"});
  graph_ = copy;
  std::get<Convolution>(graph_.nodes[1].attributes).stride = 0;
  expect_error({"'conv1' can't be", "stride 0"});
  graph_ = copy;
  std::get<BatchNorm>(graph_.nodes[2].attributes).epsilon = 0;
  expect_error({"'bn1' can't be", "epsilon 0"});
  graph_ = copy;
  std::get<Activation>(graph_.nodes[3].attributes) = {.kind = ActivationKind::leaky_relu, .slope = -1};
  expect_error({"'act' can't be", "slope -1"});
}

TEST_F(Validate, InputFirstLossLast) {
  const Graph copy = graph_;
  graph_.nodes.pop_back();
  expect_error({"'fc'", "loss"});
  graph_ = copy;
  graph_.nodes[3].attributes = Input{3};
  expect_error({"'act'", "input"});
  graph_ = copy;
  graph_.nodes[3].attributes = Loss{};
  expect_error({"'act'", "loss"});
  graph_.nodes.resize(1);
  expect_error({"no layers"});
}

TEST_F(Validate, NothingToTrain) {
  Graph empty;
  empty.model = "nothing";
  empty.classes = 3;
  empty.nodes.push_back({"input", Input{3}, {}, {}});
  empty.nodes.push_back({"pool", GlobalAveragePool{}, {0}, {}});
  empty.nodes.push_back({"loss", Loss{}, {1}, {}});
  expect_usage_error([&] { make_plan(empty, {}); }, {"'nothing'", "no parameters"});
}

}  // namespace
}  // namespace convoy
