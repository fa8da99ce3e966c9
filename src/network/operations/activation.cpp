// SPDX-License-Identifier: Apache-2.0
#include "network/operations/activation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

struct Named {
  const char* name;
  ActivationKind kind;
};
constexpr const char* scale_word = "scale";
constexpr std::array<Named, 7> kinds = {{{"relu", ActivationKind::relu},
                                         {"leaky_relu", ActivationKind::leaky_relu},
                                         {"tanh", ActivationKind::tanh},
                                         {"gelu", ActivationKind::gelu},
                                         {"silu", ActivationKind::silu},
                                         {"relu6", ActivationKind::relu6},
                                         {"hard_swish", ActivationKind::hard_swish}}};

}  // namespace

Shape Activation::shape(const NodeInputs& inputs) const { return inputs.first(); }

// With a negative slope the sign of the output would no longer be that of the input, by which backends choose the
// slope.
Contract Activation::contract() const {
  return {.possible = slope >= 0 && kind != ActivationKind::identity && (kind != ActivationKind::scale || slope > 0)};
}

std::string Activation::text() const {
  switch (kind) {
    case ActivationKind::identity:
      return "identity";
    case ActivationKind::relu:
      return "relu";
    case ActivationKind::leaky_relu:
      return fmt::format("leaky relu, slope {}", slope);
    case ActivationKind::tanh:
      return "tanh";
    case ActivationKind::gelu:
      return "gelu";
    case ActivationKind::silu:
      return "silu";
    case ActivationKind::relu6:
      return "relu6";
    case ActivationKind::hard_swish:
      return "hard swish";
    case ActivationKind::scale:
      return fmt::format("scale by {}", slope);
  }
  return {};
}

OnnxOperators Activation::onnx(const NodeInputs&) const {
  switch (kind) {
    case ActivationKind::identity:
      return {};
    case ActivationKind::relu:
      return {{"Relu"}};
    case ActivationKind::leaky_relu:
      return {{"LeakyRelu", {"x"}, {{"alpha", slope}}}};
    case ActivationKind::tanh:
      return {{"Tanh"}};
    case ActivationKind::gelu:  // x / 2 * (1 + erf(x / sqrt(2)))
      return {{"Mul", {"x", std::sqrt(0.5F)}, {}, "scaled"},
              {"Erf", {"scaled"}, {}, "erf"},
              {"Add", {"erf", 1.0F}, {}, "twice"},
              {"Mul", {"x", "twice"}, {}, "product"},
              {"Mul", {"product", 0.5F}}};
    case ActivationKind::silu:
      return {{"Sigmoid", {"x"}, {}, "sigmoid"}, {"Mul", {"x", "sigmoid"}}};
    case ActivationKind::relu6:
      return {{"Clip", {"x", 0.0F, 6.0F}}};
    case ActivationKind::hard_swish:
      return {{"HardSigmoid", {"x"}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}, "gate"}, {"Mul", {"x", "gate"}}};
    case ActivationKind::scale:
      return {{"Mul", {"x", slope}}};
  }
  return {};
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const Named& each : kinds) names.emplace_back(each.name);
  return names;
}

ActivationKind activation_kind(const std::string& name) {
  const auto* found = std::find_if(kinds.begin(), kinds.end(), [&](const Named& each) { return name == each.name; });
  if (found != kinds.end()) return found->kind;
  std::string names;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 < kinds.size() ? ", " : " or ", kinds[i].name);
  fail(Exit::usage, "unknown activation '{}'; use {}", name, names);
}

ActivationKind activation_of_word(const std::string& word) {
  return word == scale_word ? ActivationKind::scale : activation_kind(word);
}

std::string activation_word(ActivationKind kind) {
  if (kind == ActivationKind::scale) return scale_word;
  const auto* found = std::find_if(kinds.begin(), kinds.end(), [&](const Named& each) { return kind == each.kind; });
  return found != kinds.end() ? found->name : "";
}

namespace {

struct OnnxKind {
  OnnxOperators form;
  ActivationKind kind;
};

/// As onnx() writes it, and as exporters of PyTorch and TensorFlow do.
std::vector<OnnxKind> make_onnx_kinds() {
  const std::string none;
  const NodeInputs inputs{.node = none, .shapes = {}, .image = {}};
  std::vector<OnnxKind> all;
  for (const Named& each : kinds)
    if (each.kind != ActivationKind::leaky_relu) all.push_back({Activation{each.kind}.onnx(inputs), each.kind});
  const float root = std::sqrt(2.0F);
  const OnnxOperator scaled{"Div", {"x", root}, {}, "scaled"}, erf{"Erf", {"scaled"}, {}, "erf"},
      twice{"Add", {"erf", 1.0F}, {}, "twice"}, half{"Mul", {"x", 0.5F}, {}, "half"},
      multiplied{"Mul", {"x", std::sqrt(0.5F)}, {}, "scaled"}, product{"Mul", {"x", "twice"}, {}, "product"};
  const std::vector<OnnxKind> others = {
      {{{"LeakyRelu"}}, ActivationKind::leaky_relu},
      {{scaled, erf, twice, product, {"Mul", {"product", 0.5F}}}, ActivationKind::gelu},
      {{scaled, erf, twice, half, {"Mul", {"half", "twice"}}}, ActivationKind::gelu},
      {{multiplied, erf, twice, half, {"Mul", {"half", "twice"}}}, ActivationKind::gelu},
      {{{"Gelu"}}, ActivationKind::gelu},
      {{{"HardSwish"}}, ActivationKind::hard_swish},
      {{{"Add", {"x", 3.0F}, {}, "moved"},
        {"Clip", {"moved", 0.0F, 6.0F}, {}, "gate"},
        {"Mul", {"x", "gate"}, {}, "product"},
        {"Div", {"product", 6.0F}}},
       ActivationKind::hard_swish},
      {{{"Add", {"x", 3.0F}, {}, "moved"},
        {"Clip", {"moved", 0.0F, 6.0F}, {}, "gate"},
        {"Div", {"gate", 6.0F}, {}, "share"},
        {"Mul", {"x", "share"}}},
       ActivationKind::hard_swish},
      {{{"Clip", {"x"}, {{"min", 0.0F}, {"max", 6.0F}}}}, ActivationKind::relu6},
      {{{"Mul", {"x", "factor"}}}, ActivationKind::scale}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

const std::vector<OnnxKind>& kinds_in_onnx() {
  static const std::vector<OnnxKind> all = make_onnx_kinds();
  return all;
}

}  // namespace

std::vector<OnnxOperators> Activation::onnx_forms() {
  std::vector<OnnxOperators> forms;
  for (const OnnxKind& each : kinds_in_onnx()) forms.push_back(each.form);
  return forms;
}

std::optional<OnnxFound<Activation>> Activation::from_onnx(const OnnxSite& site) {
  const ActivationKind kind = kinds_in_onnx().at(site.form).kind;
  if (site.word("approximate", "none") != "none") site.refuse("approximates the normal distribution's function");
  if (kind == ActivationKind::scale) {
    const OnnxConstant* const factor = site.constant("factor");
    if (factor == nullptr || !factor->extent.empty() || factor->values.size() != 1) return std::nullopt;
    return {{{.kind = kind, .slope = static_cast<float>(factor->values[0])}}};
  }
  constexpr float usual_slope = 0.01F;
  return {{{.kind = kind, .slope = kind == ActivationKind::leaky_relu ? site.real("alpha", usual_slope) : 0}}};
}

}  // namespace convoy
