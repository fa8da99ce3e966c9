// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "support/formula.hpp"

namespace convoy {
namespace {

using nlohmann::json;

json load(const std::string& name) {
  // A test that was carried to another machine finds its values there.
  const char* const carried = std::getenv("CONVOY_GOLDEN_DIR");
  const std::string path = std::string(carried != nullptr ? carried : CONVOY_GOLDEN) + '/' + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  return json::parse(file);
}

std::map<std::string, GoldenTensor> tensors_of(const json& from) {
  std::map<std::string, GoldenTensor> tensors;
  for (const auto& [name, value] : from.items()) {
    tensors[name] = {value.at("norm"), value.at("projection"), value.at("entries")};
  }
  return tensors;
}

Attributes attributes_of(const json& from) {
  const std::string op = from.at("op");
  const Index c = from.at("c");
  if (op == "convolution") {
    return Convolution{.in = c,
                       .out = from.at("k"),
                       .kernel = from.at("r"),
                       .stride = from.at("stride"),
                       .pad = from.at("pad"),
                       .groups = from.at("groups"),
                       .bias = from.at("bias"),
                       .kernel_w = from.value("s", 0),
                       .pad_w = from.value("pad_w", 0)};
  }
  if (op == "linear")
    return Linear{c * from.at("h").get<Index>() * from.at("w").get<Index>(), from.at("k"), from.at("bias")};
  if (op == "batch_norm") return BatchNorm{.channels = c};
  if (op == "activation") return Activation{activation_kind(from.at("curve")), from.at("slope")};
  if (op == "pool") {
    const Pool::Mode mode = from.at("mode") == "max" ? Pool::Mode::max : Pool::Mode::average;
    return Pool{
        mode, from.at("r"), from.at("stride"), from.at("pad"), from.at("count_padding"), from.value("ceil", false)};
  }
  if (op == "global_average_pool") return GlobalAveragePool{};
  if (op == "adaptive_average_pool") return AdaptiveAveragePool{from.at("r")};
  if (op == "local_response") return LocalResponseNorm{from.at("r"), from.at("alpha"), from.at("beta"), from.at("k")};
  if (op == "add") return Add{};
  if (op == "concatenation") return Concatenation{};
  if (op == "channel_gate") return ChannelGate{from.at("hard") ? GateKind::hard_sigmoid : GateKind::sigmoid};
  if (op == "flatten") return Flatten{};
  throw std::runtime_error("unknown golden operation " + op);
}

/// `resnet32_v2_tanh`: model, version, activation; `googlenet_aux`: with auxiliary heads.
GraphSpec graph_of(const std::string& name) {
  GraphSpec spec;
  spec.norm_epsilon = 1e-5F;  // of all networks of tests/golden/models.py
  constexpr std::string_view with_heads = "_aux";
  if (name.ends_with(with_heads)) {
    GraphSpec heads = graph_of(name.substr(0, name.size() - with_heads.size()));
    heads.options["aux-heads"] = "true";
    return heads;
  }
  const std::string first = name.substr(0, name.find('_'));
  const bool is_variant = first == "alexnet" || first == "resnet20" || first == "resnet32";
  spec.model = is_variant ? first : name;
  if (name.starts_with("resnet32_v2")) spec.options["resnet-version"] = "v2";
  for (const char* dropping : {"alexnet_owt", "vgg", "googlenet", "squeezenet", "mobilenet", "mnasnet", "efficientnet",
                               "inception_v", "inception_resnet"})
    if (name.starts_with(dropping)) spec.options["dropout"] = "0";
  if (name.starts_with("alexnet_")) spec.options["variant"] = name.substr(name.find('_') + 1);
  if (name.ends_with("_tanh") || name == "mlp") spec.activation = "tanh";
  if (name == "lenet") spec.options["pooling"] = "average";
  if (name == "mlp") spec.options["hidden"] = "40,30";
  return spec;
}

GoldenNetwork network_of(const json& from) {
  GoldenNetwork network;
  network.graph = graph_of(from.at("model"));
  network.graph.classes = from.at("classes");
  network.graph.channels = from.at("channels");
  network.graph.image_size = from.at("image");
  network.graph.label_smoothing = from.at("smoothing");
  network.n = from.at("n");
  network.mixed = from.at("mixed");
  if (from.contains("step")) network.step = {.seed = from["step"].at("seed"), .step = from["step"].at("step")};
  return network;
}

}  // namespace

void expect_golden(const GoldenTensor& golden, const std::string& name, const reference::Values& values,
                   double tolerance, std::optional<double> size) {
  const double limit = tolerance * size.value_or(golden.norm);
  double squares = 0, projection = 0;
  const reference::Values direction = formula_values(name + "/projection", static_cast<Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += values[i] * values[i];
    projection += values[i] * direction[i];
  }
  EXPECT_NEAR(std::sqrt(squares), golden.norm, limit) << name;
  EXPECT_NEAR(projection, golden.projection, limit) << name;
  ASSERT_GE(values.size(), golden.entries.size()) << name;
  for (std::size_t i = 0; i < golden.entries.size(); ++i) {
    EXPECT_NEAR(values[i * values.size() / golden.entries.size()], golden.entries[i], limit) << name << ", entry " << i;
  }
}

std::vector<GoldenOperation> load_golden_operations() {
  std::vector<GoldenOperation> operations;
  const json file = load("operations");
  for (const json& from : file.at("operations")) {
    GoldenOperation& operation = operations.emplace_back();
    operation.name = from.at("name");
    operation.attributes = attributes_of(from);
    operation.x = operation.other = {from.at("n"), from.at("c"), from.at("h"), from.at("w")};
    if (from.contains("other")) operation.other.c = from["other"];
    if (from.contains("hard")) operation.other.h = operation.other.w = 1;
    std::vector<Index> shape = from.at("shape");
    shape.resize(4, 1);
    operation.y = {shape[0], shape[1], shape[2], shape[3]};
    operation.running = from.value("running", false);
    operation.results = tensors_of(from.at("results"));
  }
  return operations;
}

std::vector<GoldenLoss> load_golden_losses() {
  std::vector<GoldenLoss> losses;
  const json file = load("operations");
  for (const json& from : file.at("losses")) {
    losses.push_back({from.at("name"),
                      Loss{from.at("smoothing")},
                      from.at("n"),
                      from.at("classes"),
                      from.at("mixed"),
                      from.at("scale").get<float>(),
                      {},
                      tensors_of(from.at("results"))});
    GoldenLoss& loss = losses.back();
    if (!from.value("weighted", false)) continue;
    const reference::Values weights = formula_values(loss.name + "/weights", loss.classes, 0.75, 1);
    loss.class_weights.assign(weights.begin(), weights.end());
  }
  return losses;
}

std::vector<GoldenOptimiser> load_golden_optimisers() {
  std::vector<GoldenOptimiser> optimisers;
  const json file = load("optimisers");
  for (const json& from : file.at("optimisers")) {
    GoldenOptimiser& optimiser = optimisers.emplace_back();
    optimiser.name = from.at("name");
    const std::string rule = from.at("rule");
    for (const Rule named : all_rules)
      if (with_optimiser(named, [&](auto is) { return rule == decltype(is)::name; })) optimiser.spec.rule = named;
    std::size_t i = 0;
    for (const json& option : from.at("options")) optimiser.options.value[i++] = option;
    optimiser.decay = from.at("decay");
    optimiser.spec.clip_norm = from.at("clip");
    optimiser.rates = from.at("rates").get<std::vector<float>>();
    if (from.contains("shape")) optimiser.shape = from["shape"].get<std::vector<Index>>();
    optimiser.skipped = from.at("skipped").get<std::set<std::size_t>>();
    optimiser.results = tensors_of(from.at("results"));
  }
  return optimisers;
}

Plan golden_optimiser_plan(const GoldenOptimiser& golden) {
  Plan plan;
  plan.table.rows.resize(2);
  Parameter &a = plan.table.rows[0], &b = plan.table.rows[1];
  a.range = {0, 40};
  a.shape = golden.shape;
  a.decay = golden.decay;
  b.range = {48, 21};
  b.rate_multiplier = 2;
  b.kind = Kind::bias;
  plan.table.parameters = {0, 80};
  plan.table.statistics = {80, 0};
  plan.table.flags = {80, 3};
  plan.table.exchange = {96, 0};
  return plan;
}

GoldenNetwork load_golden_network(const std::string& name) {
  const json from = load(name);
  GoldenNetwork network = network_of(from);
  for (const json& batch : from.at("batches")) {
    network.batches.push_back(
        {tensors_of(batch.at("results")), tensors_of(batch.at("gradients")), tensors_of(batch.at("statistics"))});
  }
  return network;
}

GoldenSteps load_golden_steps(const std::string& model) {
  const json file = load("steps");
  for (const json& from : file.at("networks")) {
    if (from.at("model") != model) continue;
    GoldenSteps steps{network_of(from),  from.at("rates"),   from.at("momentum"),  from.at("decay"),
                      from.at("losses"), from.at("changes"), from.at("statistics")};
    steps.network.graph.norm_momentum = from.at("norm_momentum").get<float>();
    if (from.contains("activation")) steps.network.graph.activation = from["activation"];
    return steps;
  }
  throw std::runtime_error("no golden steps of " + model);
}

}  // namespace convoy
