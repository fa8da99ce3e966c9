// SPDX-License-Identifier: Apache-2.0
// Operations and whole networks against PyTorch: the reference to rounding in double, a backend to what PyTorch's own
// fp32 deviates from its fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/backend_run.hpp"
#include "support/formula.hpp"
#include "support/golden.hpp"
#include "support/reference_network.hpp"
#include "support/test_backend.hpp"

namespace convoy {
namespace {

using reference::Tensor;
using reference::Values;

constexpr double exact = 1e-9;

TEST(GoldenOperations, ReferenceEqualsPyTorch) {
  const std::vector<GoldenOperation> operations = load_golden_operations();
  EXPECT_EQ(operations.size(), 25U);
  for (const GoldenOperation& golden : operations) {
    const std::string& name = golden.name;
    const Node node{name, golden.attributes, {}, {}};
    const Tensor x = formula_tensor(name + "/x", golden.x, 2), other = formula_tensor(name + "/other", golden.x);
    const auto count_of = [&](const char* parameter) -> Index {
      if (const auto* c = as<Convolution>(node))
        return parameter[0] == 'w' ? c->out * c->in / c->groups * c->kernel * c->kernel : c->out;
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
  EXPECT_EQ(losses.size(), 4U);
  for (const GoldenLoss& golden : losses) {
    const Tensor logits = formula_tensor(golden.name + "/logits", {golden.n, golden.classes}, 4);
    const std::vector<SampleSpec> samples = formula_samples(golden.name, golden.n, golden.classes, golden.mixed);
    expect_golden(golden.results.at("loss"), golden.name + "/loss",
                  reference::loss_forward(golden.loss, logits, samples), exact);
    expect_golden(golden.results.at("dlogits"), golden.name + "/dlogits",
                  reference::loss_backward(golden.loss, logits, samples, golden.scale).values, exact);
  }
}

Values slice(const Values& block, Range range) { return {block.begin() + range.begin, block.begin() + range.end()}; }

/// Euclidean distance of the backend's tensor from the reference's, relative to the latter's norm.
double deviation(const float* from, const double* exact_values, Index count) {
  double squares = 0, distance = 0;
  for (Index i = 0; i < count; ++i) {
    squares += exact_values[i] * exact_values[i];
    distance += (from[i] - exact_values[i]) * (from[i] - exact_values[i]);
  }
  return std::sqrt(distance / squares);
}

class GoldenNetworks : public testing::TestWithParam<const char*> {
 protected:
  /// Runs the reference, and checks it against PyTorch.
  void SetUp() override {
    golden_ = load_golden_network(GetParam());
    plan_ = make_plan(build_graph(golden_.graph), {});
    values_ = formula_parameters(plan_.table);
    const Index size = golden_.graph.image_size, channels = golden_.graph.channels;
    images_ = formula_images("x", golden_.n * size * size * channels);
    samples_ = formula_samples("labels", golden_.n, golden_.graph.classes, golden_.mixed);
    scale_ = 1.0F / static_cast<float>(golden_.n);
    const Tensor x = formula_network_input(images_, {golden_.n, channels, size, size});
    exact_ = reference::run_network(plan_, {&values_, nullptr, &x, samples_, scale_});
  }

  GoldenNetwork golden_;
  Plan plan_;
  Values values_;
  std::vector<std::uint8_t> images_;
  std::vector<SampleSpec> samples_;
  float scale_ = 1;
  reference::NetworkResult exact_;
};

TEST_P(GoldenNetworks, ReferenceAndBackendEqualPyTorch) {
  expect_golden(golden_.results.at("logits"), "logits", exact_.logits.values, exact);
  expect_golden(golden_.results.at("loss"), "loss", exact_.loss, exact);
  expect_golden(golden_.results.at("dx"), "dx", exact_.dx.values, exact);
  EXPECT_EQ(golden_.gradients.size(), plan_.table.rows.size());
  for (const Parameter& row : plan_.table.rows) {
    ASSERT_TRUE(golden_.gradients.contains(row.name)) << row.name;
    expect_golden(golden_.gradients.at(row.name), row.name, slice(exact_.gradients, row.range), exact);
  }
  EXPECT_EQ(golden_.statistics.size(), 2 * plan_.table.norms.size());
  for (const NormStatistics& norm : plan_.table.norms) {
    const std::string mean = norm.name + ".running_mean", variance = norm.name + ".running_var";
    expect_golden(golden_.statistics.at(mean), mean, slice(exact_.statistics, norm.mean), exact);
    expect_golden(golden_.statistics.at(variance), variance, slice(exact_.statistics, norm.variance), exact);
  }
  if (HasFailure()) return;  // the rest is measured against the reference

  const auto backend = make_test_backend();
  BackendInput input;
  input.spec.samples = golden_.n;
  input.spec.height = input.spec.width = golden_.graph.image_size;
  input.spec.input = formula_input(golden_.graph.image_size, golden_.graph.image_size, golden_.graph.channels);
  input.values = &values_;
  input.images = images_;
  input.samples = samples_;
  input.scale = scale_;
  const BackendResult result = run_on(*backend, plan_, input);

  // What is compared, ours and PyTorch's deviation.
  struct Deviation {
    std::string name;
    double ours, theirs;
  };
  std::vector<Deviation> gradients, others;
  others.push_back({"logits", deviation(result.logits.data(), exact_.logits.values.data(), exact_.logits.count()),
                    golden_.results.at("logits").deviation});
  others.push_back(
      {"loss", deviation(result.loss.data(), exact_.loss.data(), golden_.n), golden_.results.at("loss").deviation});
  for (const NormStatistics& norm : plan_.table.norms) {
    const float* const tail = result.gradients.data() + plan_.table.statistics.begin;
    for (const auto& [suffix, range] : {std::pair{".running_mean", norm.mean}, {".running_var", norm.variance}}) {
      others.push_back({norm.name + suffix,
                        deviation(tail + range.begin, exact_.statistics.data() + range.begin, range.count),
                        golden_.statistics.at(norm.name + suffix).deviation});
    }
  }
  for (const Parameter& row : plan_.table.rows) {
    gradients.push_back({row.name,
                         deviation(result.gradients.data() + row.range.begin, exact_.gradients.data() + row.range.begin,
                                   row.range.count),
                         golden_.gradients.at(row.name).deviation});
  }
  const auto worst = [](const std::vector<Deviation>& all, double Deviation::*whose) {
    return *std::max_element(all.begin(), all.end(),
                             [&](const auto& a, const auto& b) { return !(a.*whose >= b.*whose); });
  };
  for (const auto& [what, all] : {std::pair{"gradients", &gradients}, {"other tensors", &others}}) {
    const Deviation ours = worst(*all, &Deviation::ours), theirs = worst(*all, &Deviation::theirs);
    std::printf("%s, %s: worst deviation from fp64 %.2e (%s), PyTorch %.2e (%s)\n", GetParam(), what, ours.ours,
                ours.name.c_str(), theirs.theirs, theirs.name.c_str());
  }
  const bool smooth = golden_.graph.model == "lenet" || golden_.graph.model == "mlp";
  for (const auto* all : {&gradients, &others}) {
    const double limit = smooth ? 1e-4 : 2 * worst(*all, &Deviation::theirs).theirs;
    for (const Deviation& each : *all) EXPECT_LE(each.ours, limit) << each.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenNetworks, testing::Values("lenet", "mlp", "resnet20", "resnet32_v2", "resnet50"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace convoy
