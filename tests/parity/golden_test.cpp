// SPDX-License-Identifier: Apache-2.0
// Operations and whole networks against PyTorch: the reference to rounding in double, a backend to rounding in fp32.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>

#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/golden.hpp"
#include "support/reference/network.hpp"
#include "support/rounding.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Tensor;
using reference::Values;

constexpr double exact = 1e-9;

TEST(GoldenOperations, ReferenceEqualsPyTorch) {
  const std::vector<GoldenOperation> operations = load_golden_operations();
  EXPECT_EQ(operations.size(), 40U);
  for (const GoldenOperation& golden : operations) {
    const std::string& name = golden.name;
    const Node node{name, golden.attributes, {}, {}};
    const Tensor x = formula_tensor(name + "/x", golden.x, 2), other = formula_tensor(name + "/other", golden.other);
    const auto count_of = [&](const char* parameter) -> Index {
      if (const auto* c = as<Convolution>(node))
        return parameter[0] == 'w' ? c->out * c->in / c->groups * c->kernel * c->s() : c->out;
      if (const auto* l = as<Linear>(node)) return parameter[0] == 'w' ? l->in * l->out : l->out;
      return golden.x.c;
    };
    const Values weight = formula_values(name + "/weight", count_of("weight")),
                 bias = formula_values(name + "/bias", count_of("bias"));
    const Values mean = formula_values(name + "/mean", golden.x.c),
                 variance = formula_values(name + "/variance", golden.x.c, 0.5, 1);
    reference::Operands operands{{&x, &other}, {&weight, &bias}};
    if (golden.running) operands.running_mean = &mean, operands.running_variance = &variance;

    const reference::Output output = reference::forward(node, operands);
    expect_golden(golden.results.at("y"), name + "/y", output.y.values, exact);
    const Tensor dy = formula_tensor(name + "/dy", golden.y);
    const reference::Gradient gradient = reference::backward(node, operands, output, dy);
    for (const auto& [what, tensor] : golden.results) {
      if (what == "y") continue;
      const Values& values = what == "dx"        ? gradient.dx.at(0).values
                             : what == "dother"  ? gradient.dx.at(1).values
                             : what == "dweight" ? gradient.dparameters.at(0)
                                                 : gradient.dparameters.at(1);
      expect_golden(tensor, name + '/' + what, values, exact);
    }
  }
}

TEST(GoldenOperations, ReferenceLossEqualsPyTorch) {
  const std::vector<GoldenLoss> losses = load_golden_losses();
  EXPECT_EQ(losses.size(), 6U);
  for (const GoldenLoss& golden : losses) {
    const Tensor logits = formula_tensor(golden.name + "/logits", {golden.n, golden.classes}, 4);
    const std::vector<SampleSpec> samples = formula_samples(golden.name, golden.n, golden.classes, golden.mixed);
    expect_golden(golden.results.at("loss"), golden.name + "/loss",
                  reference::loss_forward(golden.loss, logits, samples, golden.class_weights), exact);
    expect_golden(golden.results.at("dlogits"), golden.name + "/dlogits",
                  reference::loss_backward(golden.loss, logits, samples, golden.scale, golden.class_weights).values,
                  exact);
  }
}

/// The size that a gradient's error is measured by: its norm. A bias in front of a batch norm has no gradient in exact
/// arithmetic, and rounding leaves something in its place: that is measured by the largest gradient of the network.
double size_of(double norm, double largest) { return norm < 1e-10 * largest ? largest : norm; }

Values slice(const Values& block, Range range) { return {block.begin() + range.begin, block.begin() + range.end()}; }

/// Whether the gradients of ReLU and of Winograd can't be compared. Of the deep ones, SmoothNetworks compares those of
/// tanh. GoogLeNet's pools of stride 1 repeat the maxima of small maps: the pool behind them has as many ties.
bool has_many_kinks(const std::string& name) {
  return name == "inception_v4" || name == "inception_resnet_v2" || name.starts_with("googlenet");
}

/// The Euclidean distances of tensors from fp64, relative to their norms.
class Deviations {
 public:
  void add(const std::string& name, const float* values, const double* exact_values, Index count, double largest = 0) {
    double squares = 0, distance = 0;
    for (Index i = 0; i < count; ++i) {
      squares += exact_values[i] * exact_values[i];
      distance += (values[i] - exact_values[i]) * (values[i] - exact_values[i]);
    }
    const double deviation = std::sqrt(distance) / size_of(std::sqrt(squares), largest);
    if (!(deviation <= worst_)) worst_ = deviation, name_ = name;  // also takes NaN
  }
  void expect(const std::string& what, double limit) const {
    std::printf("%s: worst %.2e (%s), limit %.2e\n", what.c_str(), worst_, name_.c_str(), limit);
    EXPECT_TRUE(worst_ <= limit) << what << ": " << name_ << " deviates by " << worst_ << ", limit " << limit;
  }

 private:
  double worst_ = 0;
  std::string name_;
};

class GoldenNetworks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = load_golden_network(GetParam());
    plan_ = make_plan(build_graph(golden_.graph), {});
    values_ = formula_parameters(plan_.table);
    scale_ = 1.0F / static_cast<float>(golden_.n);
  }

  struct Run {
    std::vector<std::uint8_t> images;
    std::vector<SampleSpec> samples;
    reference::NetworkResult exact;
  };
  Run run_reference(std::size_t batch, double tie_distance) const {
    const Index size = golden_.graph.image_size, channels = golden_.graph.channels;
    Run run;
    run.images = formula_images(fmt::format("x{}", batch), golden_.n * size * size * channels);
    run.samples = formula_samples(fmt::format("labels{}", batch), golden_.n, golden_.graph.classes, golden_.mixed);
    const Tensor x = formula_network_input(run.images, {golden_.n, channels, size, size});
    run.exact = reference::run_network(plan_, {&values_, nullptr, &x, run.samples, scale_, golden_.step, tie_distance});
    return run;
  }

  void expect_reference_equals_pytorch(const reference::NetworkResult& result, const GoldenBatch& golden) const {
    expect_golden(golden.results.at("logits"), "logits", result.logits.values, exact);
    expect_golden(golden.results.at("loss"), "loss", result.loss, exact);
    expect_golden(golden.results.at("dx"), "dx", result.dx.values, exact);
    const auto& rows = plan_.table.rows;
    EXPECT_EQ(golden.gradients.size(),
              std::count_if(rows.begin(), rows.end(), [](auto& row) { return row.trainable; }));
    const double largest = largest_gradient(result);
    for (const Parameter& row : rows) {
      if (!row.trainable) continue;
      ASSERT_TRUE(golden.gradients.contains(row.name)) << row.name;
      const GoldenTensor& expected = golden.gradients.at(row.name);
      expect_golden(expected, row.name, slice(result.gradients, row.range), exact, size_of(expected.norm, largest));
    }
    EXPECT_EQ(golden.statistics.size(), 2 * plan_.table.norms.size());
    for (const NormStatistics& norm : plan_.table.norms) {
      const std::string mean = norm.name + ".running_mean", variance = norm.name + ".running_var";
      expect_golden(golden.statistics.at(mean), mean, slice(result.statistics, norm.mean), exact);
      expect_golden(golden.statistics.at(variance), variance, slice(result.statistics, norm.variance), exact);
    }
  }

  double largest_gradient(const reference::NetworkResult& result) const {
    double largest = 0;
    for (const Parameter& row : plan_.table.rows) {
      if (!row.trainable) continue;
      double squares = 0;
      for (const double value : slice(result.gradients, row.range)) squares += value * value;
      largest = std::max(largest, std::sqrt(squares));
    }
    return largest;
  }

  CompileSpec compile_spec() const {
    CompileSpec spec;
    spec.samples = golden_.n;
    spec.height = spec.width = golden_.graph.image_size;
    spec.input = formula_input(golden_.graph.image_size, golden_.graph.image_size, golden_.graph.channels);
    return spec;
  }

  struct Measured {
    Deviations results, statistics, gradients;
  };
  Measured measure(const CompileSpec& spec, const Run& run) const {
    Measured to;
    const auto backend = make_test_backend();
    BackendInput input;
    input.spec = spec;
    input.values = &values_;
    input.images = run.images;
    input.samples = run.samples;
    input.scale = scale_;
    input.step = golden_.step;
    const BackendResult result = run_on(*backend, plan_, input);
    to.results.add("logits", result.logits.data(), run.exact.logits.values.data(), run.exact.logits.count());
    to.results.add("loss", result.loss.data(), run.exact.loss.data(), golden_.n);
    const float* const tail = result.gradients.data() + plan_.table.statistics.begin;
    for (const NormStatistics& norm : plan_.table.norms) {
      for (const Range range : {norm.mean, norm.variance})
        to.statistics.add(norm.name, tail + range.begin, run.exact.statistics.data() + range.begin, range.count);
    }
    const double largest = largest_gradient(run.exact);
    for (const Parameter& row : plan_.table.rows) {
      if (!row.trainable) continue;
      to.gradients.add(row.name, result.gradients.data() + row.range.begin,
                       run.exact.gradients.data() + row.range.begin, row.range.count, largest);
    }
    return to;
  }

  /// Winograd trades some of the precision for speed; this is what the backend chose, without it.
  std::string choices_without_winograd() const {
    const auto backend = make_test_backend();
    const std::string chosen = backend->compile(plan_, compile_spec())->choices();
    return std::regex_replace(chosen, std::regex("winograd"), "direct");
  }

  /// The limits are support/rounding.hpp's.
  void expect_backend_equals_reference(const std::string& name, const Run& run) const {
    const Tensor shape(golden_.n, golden_.graph.channels, golden_.graph.image_size, golden_.graph.image_size);
    const auto expect = [&](const std::string& what, const Measured& measured, double gain) {
      const double limit = gain * rounding_bound(plan_.graph, shape);
      measured.results.expect(what + " results", limit);
      if (!plan_.table.norms.empty()) measured.statistics.expect(what + " statistics", limit);
      const double gradient_limit = gradient_bound(limit, run.exact.ties, gain * kink_reach(plan_.graph));
      if (gradient_limit < 1)
        measured.gradients.expect(what + " gradients", gradient_limit);
      else
        EXPECT_TRUE(has_many_kinks(name)) << what << ": too many units near their kinks to compare gradients";
    };
    CompileSpec direct = compile_spec();
    direct.choices = choices_without_winograd();
    expect(name, measure(compile_spec(), run), winograd_gain);
    expect(name + " without Winograd", measure(direct, run), test_device() == "cpu" ? 1 : winograd_gain);
  }

  GoldenNetwork golden_;
  Plan plan_;
  Values values_;
  float scale_ = 1;
};

TEST_P(GoldenNetworks, ReferenceAndBackendEqualPyTorch) {
  for (std::size_t batch = 0; batch < golden_.batches.size(); ++batch) {
    const Run run = run_reference(batch, winograd_gain * kink_reach(plan_.graph));
    expect_reference_equals_pytorch(run.exact, golden_.batches[batch]);
    if (HasFailure()) return;  // the backend is measured against the reference
    expect_backend_equals_reference(GetParam(), run);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenNetworks,
                         testing::Values("lenet", "mlp", "alexnet", "alexnet_ray", "resnet20_tanh", "resnet32_v2_tanh",
                                         "resnet20", "resnet32_v2", "resnet50", "vgg11_bn", "densenet121", "googlenet",
                                         "googlenet_aux", "mobilenet_v2", "squeezenet1_1", "inception_v3",
                                         "inception_v4", "inception_resnet_v2", "inception_bn", "mobilenet_v3_small",
                                         "efficientnet_b0", "efficientnet_v2_s", "mnasnet0_5", "airbench94",
                                         "alexnet_owt", "vgg11", "mobilenet_v1", "resnet18", "resnext50_32x4d",
                                         "wide_resnet50_2", "seresnet50", "wrn16_4", "regnet_y_400mf"),
                         [](const auto& test) { return std::string(test.param); });

/// The same networks with tanh instead of ReLU. Units near a kink, for which the gradients of the others are granted a
/// few percent, are left in max pooling only, so that small errors of gradients show. The reference is proved above.
class SmoothNetworks : public GoldenNetworks {
 protected:
  void SetUp() override {
    GoldenNetworks::SetUp();
    golden_.graph.activation = "tanh";
    plan_ = make_plan(build_graph(golden_.graph), {});
  }
};

TEST_P(SmoothNetworks, BackendEqualsReference) {
  expect_backend_equals_reference(GetParam() + std::string(" with tanh"),
                                  run_reference(0, winograd_gain * kink_reach(plan_.graph)));
}

INSTANTIATE_TEST_SUITE_P(Models, SmoothNetworks,
                         testing::Values("alexnet", "resnet50", "vgg11_bn", "densenet121", "googlenet", "mobilenet_v2",
                                         "mobilenet_v3_small", "inception_v4", "inception_resnet_v2", "inception_bn"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace convoy
