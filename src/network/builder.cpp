// SPDX-License-Identifier: Apache-2.0
#include "network/builder.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

Activation activation_of(const GraphSpec& spec, Curve otherwise) {
  if (spec.activation.empty())
    return {.curve = otherwise, .slope = otherwise == Curve::leaky_relu ? spec.leaky_slope : 0};
  if (spec.activation == "relu") return {.curve = Curve::relu};
  if (spec.activation == "leaky_relu") return {.curve = Curve::leaky_relu, .slope = spec.leaky_slope};
  if (spec.activation == "tanh") return {.curve = Curve::tanh};
  fail(Exit::usage, "unknown activation '{}'; use relu, leaky_relu or tanh", spec.activation);
}

/// What the user asked for filters, for a convolution or a linear layer of this activation. The default follows He et
/// al. for ReLU (convolutions fan-out, as torchvision; linear layers fan-in) and Glorot and Bengio for tanh.
Initialiser filter_start(const GraphSpec& spec, Curve curve, Fill he) {
  const std::string& name = spec.initialiser;
  if (name.empty()) return {curve == Curve::tanh ? Fill::xavier_uniform : he};
  if (name == "he") return {he};
  if (name == "xavier") return {Fill::xavier_uniform};
  if (name == "normal") return {Fill::normal, spec.initialiser_std};
  if (name == "truncated_normal") return {Fill::truncated_normal, spec.initialiser_std};
  if (name == "uniform") return {Fill::uniform, spec.initialiser_std};
  fail(Exit::usage, "unknown initialiser '{}'; use he, xavier, normal, truncated_normal or uniform", name);
}

}  // namespace

GraphBuilder::GraphBuilder(const GraphSpec& spec, Curve default_activation)
    : spec_(spec),
      activation_(activation_of(spec, default_activation)),
      convolution_start_(filter_start(spec, activation_.curve, Fill::he_fan_out_normal)),
      linear_start_(filter_start(spec, activation_.curve, Fill::he_fan_in_normal)) {
  graph_.classes = spec.classes;
}

NodeId GraphBuilder::input() { return append("input", Input{spec_.channels}, {}, spec_.channels); }

NodeId GraphBuilder::convolution(const std::string& name, NodeId from, Convolution attributes) {
  attributes.in = channels(from);
  const NodeId node = append(name, attributes, {from}, attributes.out);
  const Index side = attributes.kernel;
  add_parameter(node, "weight", Kind::filter, {attributes.out, attributes.in / attributes.groups, side, side},
                convolution_start_);
  if (attributes.bias) add_parameter(node, "bias", Kind::bias, {attributes.out}, {Fill::zeros});
  return node;
}

NodeId GraphBuilder::batch_norm(const std::string& name, NodeId from) {
  const Index k = channels(from);
  const NodeId node =
      append(name, BatchNorm{.channels = k, .momentum = spec_.norm_momentum, .epsilon = spec_.norm_epsilon}, {from}, k);
  add_parameter(node, "weight", Kind::norm_scale, {k}, {Fill::ones});
  add_parameter(node, "bias", Kind::norm_shift, {k}, {Fill::zeros});
  return node;
}

NodeId GraphBuilder::activation(const std::string& name, NodeId from) {
  return append(name, activation_, {from}, channels(from));
}

NodeId GraphBuilder::curve(const std::string& name, NodeId from, Curve curve) {
  return append(name, Activation{.curve = curve}, {from}, channels(from));
}

NodeId GraphBuilder::pool(const std::string& name, NodeId from, Pool attributes) {
  return append(name, attributes, {from}, channels(from));
}

NodeId GraphBuilder::local_response_norm(const std::string& name, NodeId from, LocalResponseNorm attributes) {
  return append(name, attributes, {from}, channels(from));
}

NodeId GraphBuilder::dropout(const std::string& name, NodeId from, float rate) {
  return append(name, Dropout{rate}, {from}, channels(from));
}

NodeId GraphBuilder::global_average_pool(const std::string& name, NodeId from) {
  return append(name, GlobalAveragePool{}, {from}, channels(from));
}

NodeId GraphBuilder::flatten(const std::string& name, NodeId from) {
  const bool pooled = as<GlobalAveragePool>(graph_.nodes.at(static_cast<std::size_t>(from))) != nullptr;
  const Index values =
      pooled ? channels(from)
             : infer_shapes(graph_, spec_.image_size, spec_.image_size).at(static_cast<std::size_t>(from)).count();
  return append(name, Flatten{}, {from}, values);
}

NodeId GraphBuilder::linear(const std::string& name, NodeId from, Index out) {
  return append_linear(name, from, out, linear_start_);
}

NodeId GraphBuilder::add(const std::string& name, NodeId branch, NodeId shortcut) {
  return append(name, Add{}, {branch, shortcut}, channels(branch));
}

Graph GraphBuilder::classify(const std::string& name, NodeId from, const std::string& model) {
  const float bound = static_cast<float>(1 / std::sqrt(static_cast<double>(channels(from))));
  const Initialiser start = spec_.initialiser.empty() ? Initialiser{Fill::uniform, bound} : linear_start_;
  const NodeId logits = append_linear(name, from, spec_.classes, start);
  append("loss", Loss{spec_.label_smoothing}, {logits}, 1);
  graph_.model = model;
  return std::move(graph_);
}

void GraphBuilder::start_at_zero(NodeId node) {
  graph_.nodes.at(static_cast<std::size_t>(node)).parameters.at(0).initialiser = {Fill::zeros};
}

NodeId GraphBuilder::append(const std::string& name, Attributes attributes, std::vector<NodeId> inputs,
                            Index channels) {
  graph_.nodes.push_back({name, attributes, std::move(inputs), {}});
  channels_.push_back(channels);
  return static_cast<NodeId>(graph_.nodes.size() - 1);
}

void GraphBuilder::add_parameter(NodeId node, const char* suffix, Kind kind, std::vector<Index> shape,
                                 Initialiser initialiser) {
  Node& owner = graph_.nodes.at(static_cast<std::size_t>(node));
  owner.parameters.push_back({owner.name + '.' + suffix, kind, std::move(shape), initialiser});
}

NodeId GraphBuilder::append_linear(const std::string& name, NodeId from, Index out, Initialiser initialiser) {
  const Index in = channels(from);
  const NodeId node = append(name, Linear{.in = in, .out = out}, {from}, out);
  add_parameter(node, "weight", Kind::filter, {out, in}, initialiser);
  add_parameter(node, "bias", Kind::bias, {out}, {Fill::zeros});
  return node;
}

}  // namespace convoy
