// SPDX-License-Identifier: Apache-2.0
// Every operation, alone and in the patterns that backends fuse, against the double reference: forward, loss,
// statistics and all gradients, in fp32, bf16 and, where there are, tf32 and fp16. A case is a line of
// support/case_graph.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "core/topology.hpp"
#include "support/backend_run.hpp"
#include "support/case_graph.hpp"
#include "support/formula.hpp"
#include "support/reference/network.hpp"
#include "support/rounding.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Tensor;
using reference::Values;

/// Kinks of which a rounded input may fall on the other side, which moves gradients by more than rounding does. `make`
/// and the input are exact, so a kink right behind them is met exactly; one behind anything else isn't.
int inexact_kinks(const Graph& graph) {
  std::vector<bool> is_exact(graph.nodes.size(), false);
  int kinks = 0;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    bool inputs_exact = true;
    for (const NodeId from : node.inputs) inputs_exact = inputs_exact && is_exact[static_cast<std::size_t>(from)];
    kinks += has_kink(node) && !inputs_exact ? 1 : 0;
    const bool keeps = node.name.starts_with("make") || has_kink(node) || as<Concatenation>(node) != nullptr;
    is_exact[id] = as<Input>(node) != nullptr || (inputs_exact && keeps);
  }
  return kinks;
}

struct Tolerance {
  double rounding = 0;  ///< of the largest magnitude of a node's values, for each of its elements
  double distance = 0;  ///< 0: elements are compared; else the Euclidean distance is, relative to the norm
};

/// fp32: support/rounding.hpp; where units are tied behind rounded values, as distances. Half precision also rounds
/// every stored activation and gradient, each with an error of its own, and sums in fp32. With a kink behind rounded
/// values, about one in 1/eps of them falls on the other side; that is an error of sqrt(share) in the norm, and the
/// shares of several kinks add up. Twice the expected square is allowed for, but no less than for two. A GPU adds up in
/// fp32 only, and stores filters' gradients in the precision too: one more rounding. tf32 rounds what is multiplied, to
/// 11 bits.
Tolerance tolerance_for(Precision precision, const Graph& graph, double sums, double gradients) {
  const int kinks = inexact_kinks(graph);
  if (precision == Precision::fp32) return {sums, kinks > 0 && gradients > sums ? gradients : 0};
  const double half = precision == Precision::bf16 ? 0x1p-9 : precision == Precision::fp16 ? 0x1p-12 : 0x1p-11;
  const double depth = depth_of(graph) + (test_device() == "cpu" ? 0 : 1);
  return {2 * depth * half + sums, kinks > 0 ? std::sqrt(2 * std::max(kinks, 2) * 4 * half) : 0};
}

double largest(const double* values, Index count) {
  double scale = 0;
  for (Index i = 0; i < count; ++i) scale = std::max(scale, std::abs(values[i]));
  return scale;
}

class Comparison {
 public:
  Comparison(const std::string& what, Tolerance tolerance) : what_(what), tolerance_(tolerance) {}

  /// `scale`: the largest magnitude that belongs with these values.
  void operator()(const std::string& name, const float* values, const double* exact, Index count, double scale) {
    double norm = 0, distance = 0, worst = -1;
    Index at = 0;
    for (Index i = 0; i < count; ++i) {
      const double error = std::abs(values[i] - exact[i]);
      norm += exact[i] * exact[i];
      distance += error * error;
      if (!(error <= worst)) worst = error, at = i;  // also takes NaN
    }
    const bool by_distance = tolerance_.distance > 0;
    const double measure = by_distance ? std::sqrt(distance / norm) : worst / scale;
    const double limit = by_distance ? tolerance_.distance : tolerance_.rounding;
    EXPECT_TRUE(measure <= limit) << what_ << ' ' << name << ": " << measure
                                  << (by_distance ? " of its norm" : " of its largest") << ", limit " << limit
                                  << "; worst element " << at << " of " << count << " is " << values[at] << ", exact "
                                  << exact[at];
    if (!(measure / limit <= worst_share_)) worst_share_ = measure / limit, worst_name_ = name;
  }
  void print(const std::string& line) const {
    std::printf("%-5s %5.2f of the limit (%s): %s\n", what_.c_str(), worst_share_, worst_name_.c_str(), line.c_str());
  }

 private:
  std::string what_;
  Tolerance tolerance_;
  double worst_share_ = 0;
  std::string worst_name_;
};

const char* name_of(Precision precision) {
  if (precision == Precision::fp32) return "fp32";
  if (precision == Precision::tf32) return "tf32";
  return precision == Precision::bf16 ? "bf16" : "fp16";
}

/// bf16 needs AVX-512 on a CPU. Only where that is missing a test may be skipped.
bool may_lack(Precision precision) {
  if (precision == Precision::fp32 || test_device() != "cpu") return false;
  return max_cpu_isa() < CpuIsa::avx512_core || std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr ||
         __builtin_cpu_supports("avx512bw") == 0;
}

const StepParams case_step{.seed = 11, .step = 12};

/// Relative distance of a convolution by Winograd's F(4,3) with factors rounded to bf16, u = 2^-8: an error of u /
/// sqrt(3) at most in the mean, of both factors, times what the transformations magnify noise by: sqrt(14 / 3) per
/// dimension (support/rounding.hpp; here all terms of a sum have such errors, so that fewer terms don't help).
const double winograd_noise_in_bf16 = 14.0 / 3 * std::sqrt(2.0 / 3) * 0x1p-8;

/// With `options`, words of --kernels for Winograd's products in bf16, distances are compared.
void compare_with_reference(const char* text, Precision precision, const char* options = "") {
  const CaseGraph made = parse_case(text);
  const Tensor& shape = made.input;
  const Plan plan = make_plan(made.graph, {});
  const Values values = case_parameters(plan);
  const std::vector<std::uint8_t> images = formula_images("x", shape.n * shape.c * shape.h * shape.w);
  const std::vector<SampleSpec> samples = formula_samples("labels", shape.n, made.graph.classes, true);
  const Tensor x = formula_network_input(images, shape);
  const float scale = 1.0F / static_cast<float>(shape.n);
  const double gain = test_device() == "cpu" ? 1 : winograd_gain, rounding = gain * rounding_bound(plan.graph, shape),
               reach = gain * kink_reach(plan.graph);
  const reference::NetworkResult exact =
      reference::run_network(plan, {&values, nullptr, &x, samples, scale, case_step, reach});

  const auto backend = make_test_backend();
  BackendInput input;
  input.spec.samples = shape.n;
  input.spec.height = shape.h;
  input.spec.width = shape.w;
  input.spec.precision = precision;
  input.spec.options = options;
  input.spec.input = formula_input(shape.h, shape.w, shape.c);
  input.values = &values;
  input.images = images;
  input.samples = samples;
  input.scale = scale;
  input.step = case_step;
  const BackendResult result = run_on(*backend, plan, input);
  if (*options != 0) {
    EXPECT_NE(result.description.find("winograd 4x4"), std::string::npos) << result.description;
  }

  Tolerance tolerance = tolerance_for(precision, plan.graph, rounding, gradient_bound(rounding, exact.ties, reach));
  if (*options != 0) tolerance.distance = tolerance.rounding + depth_of(plan.graph) * winograd_noise_in_bf16;
  Comparison compare(name_of(precision), tolerance);
  compare("logits", result.logits.data(), exact.logits.values.data(), exact.logits.count(),
          largest(exact.logits.values.data(), exact.logits.count()));
  compare("loss", result.loss.data(), exact.loss.data(), shape.n, largest(exact.loss.data(), shape.n));
  // Sums over pixels nearly cancel before another norm: a bias is measured by its node's weight.
  std::map<NodeId, double> scales;
  for (const Parameter& row : plan.table.rows) {
    double& of_node = scales[row.node];
    of_node = std::max(of_node, largest(exact.gradients.data() + row.range.begin, row.range.count));
  }
  // On CPUs weight gradients may have products in bf16 though the results before them have none.
  const bool bf16_products = result.description.find("weights winograd 4x4 bf16") != std::string::npos;
  Comparison compare_products("bf16 products",
                              {.distance = std::max(tolerance.distance, tolerance.rounding) + winograd_noise_in_bf16});
  for (const Parameter& row : plan.table.rows) {
    const auto* const convolution = as<Convolution>(plan.graph.nodes[static_cast<std::size_t>(row.node)]);
    const bool loose =
        *options == 0 && bf16_products && convolution && convolution->kernel == 3 && row.name.ends_with(".weight");
    (loose ? compare_products : compare)('d' + row.name, result.gradients.data() + row.range.begin,
                                         exact.gradients.data() + row.range.begin, row.range.count,
                                         scales.at(row.node));
  }
  const float* const tail = result.gradients.data() + plan.table.statistics.begin;
  for (const NormStatistics& norm : plan.table.norms) {
    const double* const mean = exact.statistics.data() + norm.mean.begin;
    const double* const variance = exact.statistics.data() + norm.variance.begin;
    const double spread = std::sqrt(largest(variance, norm.variance.count));
    compare(norm.name + " mean", tail + norm.mean.begin, mean, norm.mean.count,
            std::max(spread, largest(mean, norm.mean.count)));
    compare(norm.name + " variance", tail + norm.variance.begin, variance, norm.variance.count, spread * spread);
  }
  compare.print(text);
  EXPECT_EQ(result.gradients[static_cast<std::size_t>(plan.table.flags.begin)], 0) << "flagged as not finite";
  EXPECT_EQ(result.counters.samples, shape.n);
  if (testing::Test::HasFailure()) std::printf("%s\n", result.description.c_str());
}

class Operations : public testing::TestWithParam<std::tuple<const char*, Precision>> {};

TEST_P(Operations, EqualReference) {
  const auto [text, precision] = GetParam();
  if (may_lack(precision)) GTEST_SKIP() << "no bf16 on this machine";
  compare_with_reference(text, precision);
}

class WinogradInBf16 : public testing::TestWithParam<const char*> {};

TEST_P(WinogradInBf16, EqualsReference) {
  if (test_device() != "cpu" || may_lack(Precision::bf16)) GTEST_SKIP() << "no such kernels on this machine";
  compare_with_reference(GetParam(), Precision::bf16, "winograd-bf16");
}

// Odd numbers of channels and of tiles, whose pairs are not whole; several rounds of tiles.
INSTANTIATE_TEST_SUITE_P(Winograd, WinogradInBf16,
                         testing::Values("n3c3h5w9 make:k32 conv:k48r3p1", "n2c3h31w31 make:k24 conv:k64r3p1",
                                         "n3c3h7w7 make:k64 conv:k24r3p1b1", "n3c3h8w8 make:k21 conv:k35r3p1b1",
                                         "n1c3h9w9 make:k19 conv:k9r3p1",
                                         "n6c3h7w10 conv:k32r3p1b1 tanh conv:k16r3 tanh conv:k48r3p1b1"));

std::string test_name(const testing::TestParamInfo<std::tuple<const char*, Precision>>& test) {
  std::string name = std::get<0>(test.param);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name + "_" + name_of(std::get<1>(test.param));
}

/// Lines, each in all precisions of the device.
template <class... Lines>
auto cases(Lines... lines) {
  std::vector<Precision> precisions{Precision::fp32, Precision::bf16};
  if (test_device() != "cpu") precisions.insert(precisions.end(), {Precision::tf32, Precision::fp16});
  return testing::Combine(testing::Values(lines...), testing::ValuesIn(precisions));
}

INSTANTIATE_TEST_SUITE_P(Convolution, Operations,
                         cases("n1c1h5w5 conv:k1r3p1", "n2c3h7w5 conv:k4r3s2p1", "n2c3h8w6 make:k5 conv:k7r3p1",
                               "n3c3h9w7 make:k16 conv:k16r3s2p1", "n2c3h6w6 make:k16 conv:k32r3p1",
                               "n1c3h7w9 make:k8 conv:k24r1", "n2c3h9w9 make:k16 conv:k32r1s2",
                               "n2c1h12w11 conv:k6r5b1", "n2c3h9w8 make:k20 conv:k50r5b1", "n1c3h31w29 conv:k16r7s2p3",
                               "n2c4h9w8 conv:k8r3p1", "n2c3h6w5 make:k8 conv:k12r3p1g4",
                               "n1c3h9w7 make:k32 conv:k32r3s2p1g2b1", "n2c3h7w7 make:k16 conv:k16r3p1g16",
                               "n3c3h1w1 make:k8 conv:k8r1", "n2c3h3w3 make:k16 conv:k16r3",
                               "n1c3h4w4 make:k16 conv:k16r3p1 tanh conv:k16r3p1"),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Pointwise, Operations,
                         cases("n2c3h5w7 make:k8 bn", "n3c3h4w4 make:k1 bn", "n1c3h6w5 make:k17 bn",
                               "n4c3h1w1 make:k16 bn", "n2c3h6w6 bn", "n2c3h5w7 make:k8 relu", "n2c3h5w7 make:k5 leaky",
                               "n2c3h5w7 make:k16 tanh", "n1c1h3w3 relu", "n2c3h5w4 make:k8 fork make:k8 add",
                               "n2c3h5w4 make:k16 fork add", "n2c3h4w4 make:k16 fork bn swap tanh add"),
                         test_name);

// Activations whose derivative reads their input: behind stored values, batch norms and sums, in front of convolutions.
INSTANTIATE_TEST_SUITE_P(
    ReadInput, Operations,
    cases("n2c3h5w7 make:k16 gelu", "n1c3h3w3 make:k5 silu", "n3c2h3w4 flatten linear:k7 gelu linear:k9 silu",
          "n5c3h8w8 conv:k16r3p1 bn gelu conv:k20r3p1 bn silu gap", "n3c3h6w5 conv:k16r3p1b1 gelu conv:k16r3p1 silu",
          "n4c3h8w8 conv:k16r3p1 bn gelu fork conv:k16r3p1 bn gelu conv:k16r3p1 bn add silu gap",
          "n4c3h9w9 conv:k16r3p1 bn silu fork conv:k32r3s2p1 bn silu conv:k32r3p1 bn swap conv:k32r1s2 bn add gelu gap",
          "n3c3h8w8 conv:k16r3p1 fork bn silu conv:k16r3p1 bn silu conv:k16r3p1 add bn gelu gap",
          "n4c3h8w8 conv:k16r3p1 bn relu6 conv:k16r3p1g16 bn relu6 conv:k20r1 bn relu6 gap",
          "n2c3h5w7 make:k5 hard_swish", "n4c3h8w8 conv:k16r3p1 bn hard_swish conv:k20r1 bn hard_swish gap",
          "n2c3h5w7 make:k5 scale", "n4c3h8w8 conv:k16r3p1 bn scale conv:k20r1b1 scale gap",
          "n3c3h4w4 conv:k8r2b1 gelu gap linear:k6 scale"),
    test_name);

// Kernels that are no squares, as inception networks have them.
INSTANTIATE_TEST_SUITE_P(Rectangular, Operations,
                         cases("n2c3h6w9 make:k16 conv:k16r1t7q3", "n2c3h9w6 make:k16 conv:k20r7t1p3b1",
                               "n3c3h6w7 conv:k8r1t3q1 conv:k5r3t1p1", "n2c3h9w8 make:k16 conv:k16r3t2s2p1",
                               "n4c3h8w8 conv:k16r7t1p3 bn tanh conv:k16r1t7q3 bn tanh gap"),
                         test_name);

// Channels in whole blocks and not, one pixel, squeeze and excitation behind norms, as the networks have it, and with a
// shortcut; gates of which only one input trains.
INSTANTIATE_TEST_SUITE_P(
    Gate, Operations,
    cases("n2c3h5w4 make:k16 fork gap make:k16 gate", "n2c3h5w4 make:k5 fork gap make:k5 hardgate",
          "n3c3h1w1 make:k20 fork gap make:k20 gate", "n2c3h4w5 fork gap conv:k3b1 gate make:k8",
          "n4c3h6w6 conv:k20r3p1 bn silu fork gap conv:k4b1 silu conv:k20b1 gate conv:k16r1 bn gap",
          "n4c3h6w6 conv:k32r3p1 bn relu fork gap conv:k8b1 tanh conv:k32b1 hardgate conv:k16r1 bn tanh gap",
          "n4c3h6w6 conv:k16r3p1 bn tanh keep conv:k16r3p1 bn fork gap conv:k5b1 tanh conv:k16b1 gate bn tanh"),
    test_name);

// Channels in whole blocks and not, one value twice, three values, groups in front of it and behind it (dense blocks).
INSTANTIATE_TEST_SUITE_P(
    Concatenation, Operations,
    cases("n2c3h5w4 make:k8 fork make:k16 cat conv:k8r3p1", "n2c3h5w4 make:k16 fork make:k32 cat conv:k16r3p1",
          "n2c3h5w4 make:k5 fork make:k7 cat bn relu gap", "n2c3h4w4 make:k16 fork cat relu",
          "n2c3h4w4 make:k12 fork cat conv:k16r1", "n3c2h3w4 flatten linear:k7 fork linear:k5 cat linear:k6",
          "n2c3h4w5 fork make:k8 cat conv:k8r3p1",
          "n3c3h6w6 conv:k16r3p1 bn relu fork conv:k12r3p1 bn relu cat conv:k12r3p1 gap",
          "n3c3h6w6 conv:k16r3p1 fork bn tanh conv:k12r3p1 cat fork bn tanh conv:k12r3p1 cat fork bn tanh conv:k12r3p1 "
          "cat bn tanh avgpool:r2s2 conv:k20r1",
          "n2c3h6w6 conv:k20r3p1 bn tanh fork conv:k20r3p1 add fork bn tanh conv:k9r1 cat bn gelu gap",
          // Three sources, as in inception blocks: of other sizes than a block, and groups with batch norms.
          "n2c3h5w4 make:k8 keep make:k5 fork make:k16 cat3 conv:k8r3p1",
          "n3c3h6w6 conv:k16r3p1 bn relu keep conv:k7r1 bn relu fork conv:k12r3p1 bn relu cat3 conv:k12r3p1 gap",
          // A value and the group with its batch norm: the norm's sums come before the value's gradient.
          "n3c3h6w6 conv:k16r3p1 fork bn tanh cat conv:k12r3p1 gap",
          "n3c3h6w6 conv:k16r3p1 bn tanh fork bn tanh cat conv:k12r3p1 gap"),
    test_name);

INSTANTIATE_TEST_SUITE_P(Pool, Operations,
                         cases("n2c3h8w6 make:k8 maxpool:r2s2", "n2c3h9w7 make:k16 maxpool:r3s2p1",
                               "n1c3h6w5 make:k5 maxpool:r3s1p1", "n2c3h7w7 maxpool:r2s2",
                               "n2c3h8w7 make:k16 maxpool:r3s2c1", "n2c3h8w5 make:k5 maxpool:r3s2p1c1",
                               "n2c3h8w6 make:k8 avgpool:r2s2", "n2c3h9w7 make:k16 avgpool:r3s2p1",
                               "n2c3h9w7 make:k5 avgpool:r3s2p1i1", "n1c1h5w5 avgpool:r5s1", "n2c3h5w7 make:k16 gap",
                               "n2c3h14w9 make:k16 adapt:r4", "n2c3h2w3 make:k5 adapt:r4", "n1c3h1w1 make:k8 gap",
                               "n3c3h4w5 make:k20 gap"),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Linear, Operations,
                         cases("n1c1h1w1", "n3c2h3w4 flatten linear:k7", "n4c3h2w2 flatten linear:k4128",
                               "n5c3h2w2 make:k16 flatten linear:k33 tanh",
                               "n2c3h4w4 make:k10 gap flatten linear:k12 linear:k9"),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Response, Operations,
                         cases("n2c3h5w7 make:k16 lrn:r5", "n2c3h4w3 make:k20 lrn:r5a2k2", "n1c3h3w4 make:k96 lrn:r11",
                               "n3c3h2w5 make:k7 lrn:r4a3", "n1c3h4w4 lrn:r3", "n2c3h1w1 make:k40 lrn:r1",
                               "n2c3h9w9 conv:k32r3p1b1 tanh lrn:r5 avgpool:r3s2 conv:k16r3p1 tanh"),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Dropout, Operations,
                         cases("n3c3h5w4 make:k16 drop", "n2c3h3w4 make:k5 drop:e2", "n2c3h4w4 drop:e7",
                               "n4c3h2w2 make:k16 flatten linear:k33 tanh drop linear:k20 tanh drop:e1"),
                         test_name);

// What backends fuse: norms, sums and activations around convolutions, over several tiles of images.
INSTANTIATE_TEST_SUITE_P(
    Pattern, Operations,
    cases(
        "n5c3h8w8 conv:k16r3p1 bn tanh", "n3c3h9w7 conv:k16r3p1 bn relu conv:k16r3p1 bn relu gap",
        "n4c3h8w8 conv:k16r3p1 bn tanh fork conv:k16r3p1 bn tanh conv:k16r3p1 bn add tanh gap",
        "n3c3h8w8 conv:k16r3p1 bn relu fork conv:k16r3p1 bn relu conv:k16r3p1 bn add relu gap",
        "n4c3h9w9 conv:k16r3p1 bn tanh fork conv:k32r3s2p1 bn tanh conv:k32r3p1 bn swap conv:k32r1s2 bn add tanh gap",
        "n3c3h8w8 conv:k16r3p1 bn relu fork conv:k32r3s2p1 bn relu conv:k32r3p1 bn swap conv:k32r1s2 bn add relu gap",
        "n2c3h8w8 conv:k16r3p1 bn tanh fork conv:k16r1 bn tanh conv:k16r3s2p1 bn tanh conv:k64r1 bn swap conv:k64r1s2 "
        "bn add tanh gap",
        // Bottlenecks of ReLUs, whose joins are fused in fp16, forward and backward: two in a row, and a strided one.
        "n4c3h8w8 conv:k16r3p1 bn relu fork conv:k16r1 bn relu conv:k16r3p1 bn relu conv:k64r1 bn swap conv:k64r1 bn add relu "
        "fork conv:k16r1 bn relu conv:k16r3p1 bn relu conv:k64r1 bn add relu conv:k16r1 bn relu gap",
        "n4c3h8w8 conv:k16r3p1 bn relu fork conv:k16r1 bn relu conv:k16r3s2p1 bn relu conv:k64r1 bn swap conv:k64r1s2 bn add "
        "relu fork conv:k16r1 bn relu conv:k16r3p1 bn relu conv:k64r1 bn add relu conv:k16r1 bn relu gap",
        "n3c3h8w8 conv:k16r3p1 fork bn tanh conv:k16r3p1 bn tanh conv:k16r3p1 add bn tanh gap",
        "n3c3h8w8 conv:k16r3p1 bn tanh fork conv:k32r3s2p1 bn tanh conv:k32r3p1 swap conv:k32r1s2 add bn tanh gap",
        "n3c3h8w8 conv:k16r3p1 fork bn relu conv:k16r3p1 bn relu conv:k16r3p1 add bn relu gap",
        "n2c3h8w8 conv:k16r3p1 bn leaky conv:k16r3p1 bn leaky gap",
        "n2c3h17w15 conv:k16r7s2p3 bn relu maxpool:r3s2p1 conv:k16r1 bn",
        "n3c3h4w4 conv:k16r3p1 bn relu flatten linear:k16",
        "n3c3h4w4 conv:k16r3p1 bn relu fork conv:k16r3p1 bn add relu flatten linear:k16",
        "n2c1h12w12 conv:k20r5b1 tanh avgpool:r2s2 conv:k50r3b1 tanh flatten linear:k30 tanh"),
    test_name);

// Winograd's tiles: parts of tiles, several images in a round and several rounds, odd numbers of channel blocks (the
// kernels take two), blocks that are not whole on either side, with and without border and bias, over tiles of images
// and with the whole batch.
INSTANTIATE_TEST_SUITE_P(
    Winograd, Operations,
    cases("n3c3h5w9 make:k32 conv:k48r3p1b1", "n2c3h7w7 make:k48 conv:k16r3p1", "n5c3h14w14 make:k16 conv:k48r3p1",
          "n2c3h9w14 make:k80 conv:k64r3b1", "n70c3h3w3 make:k16 conv:k16r3p1b1", "n8c3h8w7 make:k128 conv:k16r3p1b1",
          "n6c3h7w10 conv:k32r3p1b1 tanh conv:k16r3 tanh conv:k48r3p1b1", "n2c3h31w31 make:k24 conv:k64r3p1",
          "n3c3h7w7 make:k64 conv:k24r3p1b1", "n2c3h5w9 make:k40 conv:k24r3p1b1", "n2c3h31w31 make:k8 conv:k8r3p1b1",
          "n3c3h8w8 make:k21 conv:k35r3p1b1", "n2c3h7w7 make:k19 conv:k9r3b1", "n2c3h2w2 make:k16 conv:k16r3s2p1",
          "n3c3h16w15 make:k24 conv:k40r3s2p1b1", "n64c3h9w14 make:k16 conv:k16r3s2p1",
          "n4c3h8w8 conv:k24r3p1 bn tanh conv:k40r3p1b1 bn tanh conv:k13r3p1 gap"),
    test_name);

// Groups of one lane, of a part of a block, of a whole one and more, and such as no block is made of; filters of which
// a stride leaves parts of rows, or nothing; odd maps, maps of several bands of rows, a last block that isn't full.
INSTANTIATE_TEST_SUITE_P(Groups, Operations,
                         cases("n2c3h7w7 make:k32 conv:k32r3p1g32", "n2c3h5w9 make:k24 conv:k24r3p1g24b1",
                               "n2c3h9w8 make:k32 conv:k32r5s2p2g32", "n3c3h7w7 make:k48 conv:k48r5p2g48",
                               "n1c3h11w9 make:k16 conv:k16r7p3g16", "n2c3h10w11 make:k16 conv:k16r7s2p3g16",
                               "n2c3h8w8 make:k32 conv:k32r3s2p1g32b1", "n2c3h7w9 make:k20 conv:k20r3s3p1g20",
                               "n1c3h6w5 make:k16 conv:k16r1s2g16", "n2c3h7w7 make:k32 conv:k32r3p1g16b1",
                               "n2c3h5w9 make:k32 conv:k32r3p1g8", "n2c3h14w14 make:k64 conv:k64r3s2p1g16",
                               "n2c3h7w7 make:k24 conv:k24r3p1g6b1", "n2c3h5w9 make:k64 conv:k64r3p1g8",
                               "n2c3h9w7 make:k24 conv:k24r3s2p1g3", "n2c3h7w7 make:k48 conv:k48r3p1g3",
                               "n2c3h6w7 make:k64 conv:k64r3s2p1g4b1", "n1c3h5w5 make:k128 conv:k128r3p1g4",
                               "n2c3h6w5 make:k12 conv:k12r3p1g4", "n2c3h6w5 make:k48 conv:k48r3s2p1g2",
                               "n2c3h6w5 make:k16 conv:k32r3p1g16", "n2c3h6w5 make:k32 conv:k16r3p1g16b1",
                               "n2c3h6w5 make:k8 conv:k64r3p1g4", "n2c3h7w6 make:k40 conv:k40r1t5q2g10",
                               "n2c3h7w6 make:k32 conv:k32r5t1s2p2g32", "n2c4h7w6 conv:k8r3p1g4",
                               "n1c3h7w6 conv:k33r3p1g3", "n1c3h70w58 make:k16 conv:k16r3p1g16",
                               "n1c3h67w70 make:k16 conv:k16r3s2p1g4", "n1c3h40w102 make:k16 conv:k16r5p2g16",
                               "n6c3h8w8 conv:k32r3p1g1 bn relu6 conv:k32r3p1g8 bn relu6 conv:k32r5p2g32 bn gap"),
                         test_name);

// The shapes of the shipped networks' convolutions.
INSTANTIATE_TEST_SUITE_P(
    Shipped, Operations,
    cases("n4c3h32w32 conv:k16r3p1", "n2c3h32w32 make:k16 conv:k16r3p1", "n2c3h32w32 make:k16 conv:k32r3s2p1",
          "n2c3h16w16 make:k32 conv:k32r3p1", "n2c3h16w16 make:k32 conv:k64r3s2p1", "n2c3h8w8 make:k64 conv:k64r3p1",
          "n2c3h32w32 make:k16 conv:k32r1s2", "n1c3h32w32 make:k64 conv:k64r3p1", "n1c3h32w32 make:k64 conv:k128r3s2p1",
          "n1c3h16w16 make:k128 conv:k128r3p1", "n1c3h8w8 make:k256 conv:k256r3p1",
          "n1c3h8w8 make:k256 conv:k512r3s2p1", "n1c3h4w4 make:k512 conv:k512r3p1", "n1c3h112w112 conv:k64r7s2p3",
          "n1c3h56w56 make:k64 conv:k64r1", "n1c3h56w56 make:k64 conv:k64r3p1", "n1c3h28w28 make:k128 conv:k512r1",
          "n1c3h28w28 make:k256 conv:k512r1s2", "n1c3h28w28 make:k128 conv:k128r3s2p1",
          "n1c3h14w14 make:k1024 conv:k256r1", "n1c3h14w14 make:k256 conv:k256r3p1", "n1c3h7w7 make:k512 conv:k512r3p1",
          "n2c3h7w7 make:k512 conv:k2048r1", "n2c3h1w1 make:k2048"),
    test_name);

}  // namespace
}  // namespace convoy
