// SPDX-License-Identifier: Apache-2.0
#include "network/builder.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

Activation activation_of(const GraphSpec& spec, ActivationKind otherwise) {
  const ActivationKind kind = spec.activation.empty() ? otherwise : activation_kind(spec.activation);
  return {.kind = kind, .slope = kind == ActivationKind::leaky_relu ? spec.leaky_slope : 0};
}

/// What the user asked for weights, for a convolution or a linear layer before this activation. The default follows He
/// et al. for ReLU and its kin (convolutions fan-out, as torchvision; linear layers fan-in) and Glorot and Bengio for
/// tanh.
Initialiser weight_start(const GraphSpec& spec, ActivationKind activation, Fill he) {
  const std::string& name = spec.initialiser;
  if (name.empty()) return {activation == ActivationKind::tanh ? Fill::xavier_uniform : he};
  if (name == "he") return {he};
  if (name == "xavier") return {Fill::xavier_uniform};
  if (name == "normal") return {Fill::normal, spec.initialiser_std};
  if (name == "truncated_normal") return {Fill::truncated_normal, spec.initialiser_std};
  if (name == "uniform") return {Fill::uniform, spec.initialiser_std};
  if (name == "orthogonal") return {Fill::orthogonal, spec.initialiser_gain};
  fail(Exit::usage, "unknown initialiser '{}'; use he, xavier, normal, truncated_normal, uniform or orthogonal", name);
}

Initialiser start_of(Kind kind, Initialiser weight) {
  switch (kind) {
    case Kind::weight:
      return weight;
    case Kind::norm_scale:
      return {Fill::ones};
    case Kind::bias:
    case Kind::norm_shift:
      return {Fill::zeros};
  }
  return {};
}

}  // namespace

GraphBuilder::GraphBuilder(const GraphSpec& spec, ActivationKind default_activation)
    : spec_(spec),
      norms_(norms_of(spec)),
      activation_(activation_of(spec, default_activation)),
      convolution_start_(weight_start(spec, activation_.kind, Fill::he_fan_out_normal)),
      linear_start_(weight_start(spec, activation_.kind, Fill::he_fan_in_normal)) {
  graph_.classes = spec.classes;
}

NodeId GraphBuilder::input() { return append("input", {}, Input{spec_.channels}, {}); }

NodeId GraphBuilder::convolution(const std::string& name, NodeId from, Convolution attributes) {
  attributes.in = channels(from);
  return append(name, {from}, attributes, convolution_start_);
}

NodeId GraphBuilder::convolution(const std::string& name, NodeId from, Convolution attributes, Initialiser start) {
  attributes.in = channels(from);
  return append(name, {from}, attributes, spec_.initialiser.empty() ? start : convolution_start_);
}

NodeId GraphBuilder::batch_norm(const std::string& name, NodeId from) {
  return append(name, {from},
                BatchNorm{.channels = channels(from), .momentum = norms_.momentum, .epsilon = norms_.epsilon}, {});
}

NodeId GraphBuilder::activation(const std::string& name, NodeId from) { return apply(name, from, activation_); }

NodeId GraphBuilder::activation(const std::string& name, NodeId from, ActivationKind otherwise) {
  return spec_.activation.empty() ? apply(name, from, Activation{otherwise}) : activation(name, from);
}

NodeId GraphBuilder::linear(const std::string& name, NodeId from, Index out) {
  return append(name, {from}, Linear{.in = channels(from), .out = out}, linear_start_);
}

NodeId GraphBuilder::excite(const std::string& name, NodeId from, const Excitation& attributes) {
  const auto pointwise = [&](const char* part, NodeId x, Index out) {
    return convolution(name + part, x, {.out = out, .kernel = 1, .pad = 0, .bias = true});
  };
  NodeId s = pointwise(".fc1", apply(name + ".avgpool", from, GlobalAveragePool{}), attributes.squeezed);
  s = pointwise(".fc2", activation(name + ".activation", s, attributes.inside), channels(from));
  return apply(name + ".gate", {from, s}, ChannelGate{attributes.gate});
}

NodeId GraphBuilder::apply(const std::string& name, NodeId from, Attributes operation) {
  return append(name, {from}, operation, convolution_start_);
}

NodeId GraphBuilder::apply(const std::string& name, std::vector<NodeId> from, Attributes operation) {
  return append(name, std::move(from), operation, convolution_start_);
}

Initialiser GraphBuilder::usual_start(const Attributes& operation, Index in, Place place) const {
  if (!std::holds_alternative<Linear>(operation)) return convolution_start_;
  if (place == Place::inside || !spec_.initialiser.empty()) return linear_start_;
  return {Fill::uniform, static_cast<float>(1 / std::sqrt(static_cast<double>(in)))};
}

NodeId GraphBuilder::last_linear(const std::string& name, NodeId from) {
  const Linear last{.in = channels(from), .out = spec_.classes};
  return append(name, {from}, last, usual_start(last, last.in, Place::last));
}

Graph GraphBuilder::classify(const std::string& name, NodeId from, const std::string& model) {
  return finish(last_linear(name, from), model);
}

void GraphBuilder::classify_aside(const std::string& name, NodeId from, float weight) {
  apply(name + ".loss", last_linear(name, from), Loss{spec_.label_smoothing, weight});
}

Graph GraphBuilder::finish(NodeId logits, const std::string& model) {
  apply("loss", logits, Loss{spec_.label_smoothing});
  graph_.model = model;
  return std::move(graph_);
}

void GraphBuilder::start_at_zero(NodeId node) {
  graph_.nodes.at(static_cast<std::size_t>(node)).parameters.at(0).initialiser = {Fill::zeros};
}

void GraphBuilder::fix(NodeId node) { graph_.nodes.at(static_cast<std::size_t>(node)).parameters.at(0).fixed = true; }

NodeId GraphBuilder::append(const std::string& name, std::vector<NodeId> inputs, const Attributes& operation,
                            Initialiser weight) {
  NodeInputs reads{
      .node = name, .shapes = {}, .image = {0, spec_.image_size, spec_.image_size}, .classes = spec_.classes};
  for (const NodeId from : inputs) reads.shapes.push_back(shapes_.at(static_cast<std::size_t>(from)));
  shapes_.push_back(std::visit([&](const auto& each) { return each.shape(reads); }, operation));

  Node node{name, operation, std::move(inputs), {}};
  for (ParameterSlot& slot : contract_of(operation).parameters)
    node.parameters.push_back({name + '.' + slot.name, slot.kind, std::move(slot.shape), start_of(slot.kind, weight)});
  graph_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(graph_.nodes.size() - 1);
}

}  // namespace convoy
