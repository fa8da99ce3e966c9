// SPDX-License-Identifier: Apache-2.0
// The reference itself: forward against cases small enough to do by hand, backward against differences of forward.
#include <gtest/gtest.h>

#include <cmath>

#include "network/models.hpp"
#include "support/formula.hpp"
#include "support/reference/network.hpp"
#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

Tensor tensor(Tensor shape, Values values) {
  shape.values = std::move(values);
  return shape;
}

Node node_of(const Attributes& attributes) { return {"node", attributes, {}, {}}; }

Values apply(const Attributes& attributes, const Tensor& x, const std::vector<Values>& parameters = {}) {
  Operands operands;
  operands.x = {&x};
  operands.parameters.reserve(parameters.size());
  for (const Values& parameter : parameters) operands.parameters.push_back(&parameter);
  return forward(node_of(attributes), operands).y.values;
}

const Tensor counting = tensor({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});

TEST(ReferenceForward, ConvolutionIsACorrelation) {
  const Convolution spec{.in = 1, .out = 1, .kernel = 2, .stride = 1, .pad = 0};
  EXPECT_EQ(apply(spec, counting, {{1, 10, 100, 1000}}), (Values{5421, 6532, 8754, 9865}));
}
TEST(ReferenceForward, ConvolutionPadsWithZeroAndStrides) {
  const Convolution spec{.in = 1, .out = 1, .kernel = 3, .stride = 2, .pad = 1, .bias = true};
  EXPECT_EQ(apply(spec, counting, {{1, 1, 1, 1, 1, 1, 1, 1, 1}, {0.5}}), (Values{12.5, 16.5, 24.5, 28.5}));
}
TEST(ReferenceForward, ConvolutionGroupsSeeTheirOwnChannels) {
  const Convolution spec{.in = 4, .out = 2, .kernel = 1, .pad = 0, .groups = 2};
  EXPECT_EQ(apply(spec, tensor({1, 4}, {1, 2, 3, 4}), {{10, 100, 1000, 10000}}), (Values{210, 43000}));
}
TEST(ReferenceForward, LinearReadsAFlattenedImage) {
  const Linear spec{.in = 4, .out = 2};
  EXPECT_EQ(apply(spec, tensor({1, 2, 1, 2}, {1, 2, 3, 4}), {{1, 0, 0, 1, 0, 1, 1, 0}, {10, 20}}), (Values{15, 25}));
}
TEST(ReferenceForward, BatchNormUsesTheBatchOverSamplesAndPixels) {
  const BatchNorm spec{.channels = 1, .epsilon = 0};
  const Tensor x = tensor({2, 1, 1, 2}, {1, 3, 5, 7});  // mean 4, variance 5
  const Values y = apply(spec, x, {{2}, {1}});
  EXPECT_NEAR(y[0], 1 - 6 / std::sqrt(5.0), 1e-14);
  EXPECT_NEAR(y[3], 1 + 6 / std::sqrt(5.0), 1e-14);
}
TEST(ReferenceForward, BatchNormUsesRunningStatistics) {
  const Tensor x = tensor({1, 1}, {7});
  const Values scale{2}, shift{1}, mean{1}, variance{9};
  Operands operands{{&x}, {&scale, &shift}, &mean, &variance};
  EXPECT_DOUBLE_EQ(forward(node_of(BatchNorm{.channels = 1, .epsilon = 0}), operands).y.values[0], 5);
}
TEST(ReferenceForward, Activations) {
  const Tensor x = tensor({1, 3}, {-2, 0, 2});
  EXPECT_EQ(apply(Activation{ActivationKind::relu, 0}, x), (Values{0, 0, 2}));
  EXPECT_EQ(apply(Activation{ActivationKind::leaky_relu, 0.5F}, x), (Values{-1, 0, 2}));
  EXPECT_DOUBLE_EQ(apply(Activation{ActivationKind::tanh, 0}, x)[2], 0.96402758007581688);
  EXPECT_DOUBLE_EQ(apply(Activation{ActivationKind::gelu, 0}, x)[2], 1.9544997361036416);
  EXPECT_DOUBLE_EQ(apply(Activation{ActivationKind::gelu, 0}, x)[0], -0.04550026389635842);
  EXPECT_DOUBLE_EQ(apply(Activation{ActivationKind::silu, 0}, x)[2], 1.7615941559557649);
  EXPECT_EQ(apply(Activation{ActivationKind::relu6, 0}, tensor({1, 3}, {-2, 2, 8})), (Values{0, 2, 6}));
  EXPECT_EQ(apply(Activation{ActivationKind::hard_swish, 0}, tensor({1, 4}, {-4, -1.5, 1.5, 8})),
            (Values{0, -0.375, 1.125, 8}));
  EXPECT_EQ(apply(Activation{ActivationKind::scale, 0.5F}, x), (Values{-1, 0, 1}));
}
TEST(ReferenceForward, Pooling) {
  EXPECT_EQ(apply(Pool{Pool::Mode::max, 2, 1, 0}, counting), (Values{5, 6, 8, 9}));
  EXPECT_EQ(apply(Pool{Pool::Mode::average, 2, 2, 0}, counting), (Values{3}));
  EXPECT_EQ(apply(Pool{Pool::Mode::average, 3, 2, 1}, counting), (Values{12 / 9.0, 16 / 9.0, 24 / 9.0, 28 / 9.0}));
  EXPECT_EQ(apply(Pool{Pool::Mode::average, 3, 2, 1, false}, counting), (Values{3, 4, 6, 7}));
  EXPECT_EQ(apply(GlobalAveragePool{}, tensor({1, 2, 1, 2}, {1, 2, 5, 8})), (Values{1.5, 6.5}));
}
TEST(ReferenceForward, MaxPoolingIgnoresPadding) {
  EXPECT_EQ(apply(Pool{Pool::Mode::max, 3, 2, 1}, tensor({1, 1, 2, 2}, {-4, -3, -2, -1})), (Values{-1}));
}
TEST(ReferenceForward, ConcatenationKeepsSamplesApart) {
  const Tensor a = tensor({2, 1, 1, 2}, {1, 2, 5, 6}), b = tensor({2, 2, 1, 2}, {10, 20, 30, 40, 50, 60, 70, 80});
  EXPECT_EQ(forward(node_of(Concatenation{}), {{&a, &b}, {}}).y.values,
            (Values{1, 2, 10, 20, 30, 40, 5, 6, 50, 60, 70, 80}));
}
TEST(ReferenceForward, GatesScaleTheChannelsOfEachSample) {
  const Tensor x = tensor({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), s = tensor({2, 2}, {0, 3, -3, 1.5});
  EXPECT_EQ(forward(node_of(ChannelGate{GateKind::hard_sigmoid}), {{&x, &s}, {}}).y.values,
            (Values{0.5, 1, 3, 4, 0, 0, 5.25, 6}));
  const Values y = forward(node_of(ChannelGate{}), {{&x, &s}, {}}).y.values;
  EXPECT_EQ(y[1], 1);
  EXPECT_DOUBLE_EQ(y[2], 3 / (1 + std::exp(-3.0)));
}
TEST(ReferenceForward, CrossEntropy) {
  const Tensor logits = tensor({1, 2}, {0, std::log(3.0)});  // softmax 1/4, 3/4
  std::vector<SampleSpec> samples(1);
  EXPECT_NEAR(loss_forward(Loss{}, logits, samples)[0], std::log(4.0), 1e-15);
  samples[0] = {.a = 1, .b = 0, .lambda = 0.5F};
  EXPECT_NEAR(loss_forward(Loss{}, logits, samples)[0], 0.5 * std::log(4 / 3.0) + 0.5 * std::log(4.0), 1e-15);
  samples[0].lambda = 1;
  EXPECT_NEAR(loss_forward(Loss{0.5F}, logits, samples)[0], 0.75 * std::log(4 / 3.0) + 0.25 * std::log(4.0), 1e-15);
}
TEST(ReferenceBackward, TiesOfMaxPoolingGoToTheFirst) {
  const Tensor x = tensor({1, 1, 2, 2}, {3, 3, 3, 3}), dy = tensor({1, 1, 1, 1}, {1});
  const Operands operands{{&x}, {}};
  const Node node = node_of(Pool{Pool::Mode::max, 2, 2, 0});
  EXPECT_EQ(backward(node, operands, forward(node, operands), dy).dx[0].values, (Values{1, 0, 0, 0}));
}
TEST(ReferenceBackward, ActivationsAtZero) {
  const Tensor x = tensor({1, 1}, {0}), dy = tensor({1, 1}, {1});
  const Operands operands{{&x}, {}};
  for (const auto& [kind, expected] : {std::pair{ActivationKind::relu, 0.0},
                                       {ActivationKind::leaky_relu, 0.25},
                                       {ActivationKind::tanh, 1.0},
                                       {ActivationKind::gelu, 0.5},
                                       {ActivationKind::silu, 0.5}}) {
    const Node node = node_of(Activation{kind, 0.25F});
    EXPECT_EQ(backward(node, operands, forward(node, operands), dy).dx[0].values[0], expected);
  }
}

struct Case {
  const char* name;
  Attributes attributes;
  Tensor x;
  std::vector<Index> parameters = {};  ///< their counts
  bool running = false;
};

class ReferenceGradient : public testing::TestWithParam<Case> {};

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Central differences of `value` in every element of `at` against `gradient`. Their error is about h^2 of the third
/// derivative plus 1e-16 / h of the value: 1e-8 for values and derivatives near 1.
template <class Value>
void expect_gradient(Values& at, const Values& gradient, const Value& value, const std::string& what) {
  constexpr double h = 1e-5;
  ASSERT_EQ(at.size(), gradient.size()) << what;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double kept = at[i];
    at[i] = kept + h;
    const double above = value();
    at[i] = kept - h;
    const double below = value();
    at[i] = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-8 * (1 + std::abs(gradient[i]))) << what << '[' << i << ']';
  }
}

TEST_P(ReferenceGradient, EqualsDifferences) {
  const Case& c = GetParam();
  const Node node = node_of(c.attributes);
  const std::string name = c.name;
  std::vector<Tensor> x = {formula_tensor(name + "/x", c.x, 2)};
  if (as<ChannelGate>(node)) x.push_back(formula_tensor(name + "/other", {c.x.n, c.x.c, 1, 1}, 4));
  if (as<Add>(node)) x.push_back(formula_tensor(name + "/other", c.x));
  if (as<Concatenation>(node))
    for (const Index channels : {5, 1})
      x.push_back(formula_tensor(name + "/other" + std::to_string(channels), {c.x.n, channels, c.x.h, c.x.w}));
  std::vector<Values> parameters;
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    parameters.push_back(formula_values(name + "/parameter" + std::to_string(i), c.parameters[i]));
  }
  const Values mean = formula_values(name + "/mean", c.x.c),
               variance = formula_values(name + "/variance", c.x.c, 0.5, 1);
  Operands operands;
  for (const Tensor& tensor : x) operands.x.push_back(&tensor);
  for (const Values& values : parameters) operands.parameters.push_back(&values);
  if (c.running) operands.running_mean = &mean, operands.running_variance = &variance;

  const Output output = forward(node, operands);
  const Tensor dy = formula_tensor(name + "/dy", Tensor::like(output.y));
  const Gradient gradient = backward(node, operands, output, dy);
  const auto value = [&] { return dot(forward(node, operands).y.values, dy.values); };
  ASSERT_EQ(gradient.dx.size(), x.size());
  ASSERT_EQ(gradient.dparameters.size(), parameters.size());
  for (std::size_t i = 0; i < x.size(); ++i) expect_gradient(x[i].values, gradient.dx[i].values, value, "dx");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    expect_gradient(parameters[i], gradient.dparameters[i], value, "dparameter" + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, ReferenceGradient,
    testing::Values(Case{"convolution_3x3", Convolution{.in = 3, .out = 2}, {2, 3, 5, 4}, {54}},
                    Case{"convolution_stride2_odd",
                         Convolution{.in = 2, .out = 3, .kernel = 3, .stride = 2, .pad = 1},
                         {2, 2, 7, 5},
                         {54}},
                    Case{"convolution_stride2_even_bias", Convolution{2, 2, 3, 2, 1, 1, true}, {1, 2, 6, 4}, {36, 2}},
                    Case{"convolution_1x1_stride2", Convolution{3, 2, 1, 2, 0, 1, false}, {2, 3, 5, 5}, {6}},
                    Case{"convolution_5x5_no_padding", Convolution{1, 2, 5, 1, 0, 1, true}, {1, 1, 7, 6}, {50, 2}},
                    Case{"convolution_wide_padding", Convolution{1, 1, 3, 2, 3, 1, false}, {1, 1, 3, 2}, {9}},
                    Case{"convolution_groups", Convolution{4, 6, 3, 1, 1, 2, false}, {1, 4, 4, 3}, {108}},
                    Case{"convolution_depthwise", Convolution{3, 3, 3, 2, 1, 3, false}, {2, 3, 5, 4}, {27}},
                    Case{"convolution_1x7",
                         Convolution{.in = 2, .out = 3, .kernel = 1, .pad = 0, .kernel_w = 7, .pad_w = 3},
                         {2, 2, 3, 5},
                         {42}},
                    Case{"convolution_3x2",
                         Convolution{.in = 2, .out = 2, .kernel = 3, .stride = 2, .kernel_w = 2, .pad_w = 0},
                         {1, 2, 7, 6},
                         {24}},
                    Case{"linear", Linear{6, 4, true}, {3, 2, 1, 3}, {24, 4}},
                    Case{"linear_without_bias", Linear{5, 3, false}, {2, 5}, {15}},
                    Case{"batch_norm", BatchNorm{3}, {2, 3, 3, 2}, {3, 3}},
                    Case{"batch_norm_running", BatchNorm{3}, {2, 3, 3, 2}, {3, 3}, true},
                    Case{"relu", Activation{ActivationKind::relu, 0}, {2, 2, 3, 3}},
                    Case{"leaky_relu", Activation{ActivationKind::leaky_relu, 0.1F}, {2, 2, 3, 3}},
                    Case{"tanh", Activation{ActivationKind::tanh, 0}, {2, 2, 3, 3}},
                    Case{"gelu", Activation{ActivationKind::gelu, 0}, {2, 2, 3, 3}},
                    Case{"silu", Activation{ActivationKind::silu, 0}, {2, 2, 3, 3}},
                    Case{"relu6", Activation{ActivationKind::relu6, 0}, {2, 2, 3, 3}},
                    Case{"hard_swish", Activation{ActivationKind::hard_swish, 0}, {2, 2, 3, 3}},
                    Case{"scale", Activation{ActivationKind::scale, 0.375F}, {2, 2, 3, 3}},
                    Case{"gate", ChannelGate{}, {2, 3, 2, 3}},
                    Case{"hard_gate", ChannelGate{GateKind::hard_sigmoid}, {2, 3, 2, 3}},
                    Case{"concatenation", Concatenation{}, {2, 3, 2, 3}},
                    Case{"max_pool", Pool{Pool::Mode::max, 2, 2, 0}, {2, 2, 6, 4}},
                    Case{"max_pool_overlapping", Pool{Pool::Mode::max, 3, 2, 1}, {2, 2, 7, 5}},
                    Case{"average_pool", Pool{Pool::Mode::average, 2, 2, 0}, {2, 2, 6, 4}},
                    Case{"average_pool_padded", Pool{Pool::Mode::average, 3, 2, 1}, {1, 2, 7, 5}},
                    Case{"average_pool_inside_only", Pool{Pool::Mode::average, 3, 2, 1, false}, {1, 2, 7, 5}},
                    Case{"global_average_pool", GlobalAveragePool{}, {2, 3, 3, 5}},
                    Case{"adaptive_average_pool", AdaptiveAveragePool{2}, {2, 2, 5, 3}},
                    Case{"add", Add{}, {2, 2, 3, 2}},
                    Case{"local_response", LocalResponseNorm{5, 0.5F, 0.75F, 2}, {2, 7, 2, 3}},
                    Case{"local_response_even", LocalResponseNorm{4, 1, 0.5F, 1}, {1, 6, 3, 2}},
                    Case{"local_response_wide", LocalResponseNorm{11, 1, 1.25F, 1}, {2, 4, 2, 2}},
                    Case{"flatten", Flatten{}, {2, 2, 3, 2}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ReferenceBackward, CrossEntropyEqualsDifferences) {
  const Loss loss{0.1F};
  Tensor logits = formula_tensor("loss/logits", {4, 5}, 3);
  const std::vector<SampleSpec> samples = formula_samples("loss", 4, 5, true);
  const Tensor dlogits = loss_backward(loss, logits, samples, 0.25);
  const auto value = [&] {
    double sum = 0;
    for (const double v : loss_forward(loss, logits, samples)) sum += v;
    return 0.25 * sum;
  };
  expect_gradient(logits.values, dlogits.values, value, "dlogits");
}

/// Branches, shortcuts and batch norm of a whole network; only tanh, so that differences exist everywhere.
TEST(ReferenceNetwork, GradientEqualsDifferences) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 4;
  spec.activation = "tanh";
  spec.label_smoothing = 0.1F;
  const Plan plan = make_plan(build_graph(spec), {});
  Values values = formula_parameters(plan.table);
  Tensor x = formula_tensor("x", {3, 3, 8, 8}, 2);
  const std::vector<SampleSpec> samples = formula_samples("labels", 3, 4, true);
  const NetworkInput input{&values, nullptr, &x, samples, 1 / 3.0};
  const NetworkResult result = run_network(plan, input);
  const auto value = [&] {
    double sum = 0;
    for (const double v : run_network(plan, input).loss) sum += v;
    return sum / 3;
  };
  constexpr double h = 1e-5;
  const auto check = [&](double& at, double gradient, const std::string& what) {
    const double kept = at;
    at = kept + h;
    const double above = value();
    at = kept - h;
    const double below = value();
    at = kept;
    EXPECT_NEAR(gradient, (above - below) / (2 * h), 1e-8 * (1 + std::abs(gradient))) << what;
  };
  for (const Parameter& row : plan.table.rows) {
    const auto i = static_cast<std::size_t>(row.range.begin + row.range.count / 2);
    check(values[i], result.gradients[i], row.name);
  }
  for (std::size_t i = 0; i < x.values.size(); i += 97) check(x.values[i], result.dx.values[i], "dx");
}

}  // namespace
}  // namespace convoy::reference
