// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/values.hpp"

#include <algorithm>
#include <utility>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

Activating act_of(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::identity:
      return {Curve::none, 0};
    case ActivationKind::relu:
      return {Curve::relu, 0};
    case ActivationKind::leaky_relu:
      return {Curve::leaky_relu, activation.slope};
    case ActivationKind::tanh:
      return {Curve::tanh, 0};
    case ActivationKind::gelu:
    case ActivationKind::silu:
      break;
  }
  fail(Exit::usage, "CUDA has no {} yet", describe(activation));
}

/// A node's output before it is decided whether it becomes a value of its own.
struct Expression {
  int value = -1;  ///< already a value
  std::vector<Term> terms;
  Activating act;
  std::vector<NodeId> nodes;
};

class Lowerer {
 public:
  Lowerer(const Plan& plan, const CopyLayout& copies, Index height, Index width)
      : plan_(plan), copies_(copies), shapes_(infer_shapes(plan.graph, height, width)) {
    const auto& nodes = plan.graph.nodes;
    expressions_.resize(nodes.size());
    readers_.resize(nodes.size());
    for (const Node& node : nodes)
      for (const NodeId input : node.inputs) ++readers_[index(input)];
  }

  Lowering run() {
    const auto& nodes = plan_.graph.nodes;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) expressions_[i] = express(static_cast<NodeId>(i), nodes[i]);
    append_logits();
    link();
    mark_used();
    return std::move(result_);
  }

 private:
  Expression express(NodeId id, const Node& node) {
    Expression e;
    e.nodes = {id};
    if (const auto* image = as<Input>(node)) {
      const Shape& shape = shapes_[index(id)];
      e.value = append({.kind = ValueKind::input,
                        .node = id,
                        .extent = {shape.h, shape.w, image_channels(image->channels)},
                        .nodes = {id}});
    } else if (as<BatchNorm>(node)) {
      const int value = with_channels(value_of(node.inputs[0]), shapes_[index(id)].c);
      require_order(id, value);
      e.terms = {{.value = value, .norm = add_norm(id, value)}};
    } else if (as<Add>(node)) {
      e.terms = terms_of_sum(id, node, e.nodes);
    } else if (const auto* activation = as<Activation>(node)) {
      const NodeId input = node.inputs[0];
      const Expression& other = expression(input);
      if (melts(input)) {
        e.terms = other.terms;
        e.nodes.insert(e.nodes.begin(), other.nodes.begin(), other.nodes.end());
      } else {
        e.terms = {{.value = value_of(input)}};
      }
      e.act = act_of(*activation);
    } else if (as<Flatten>(node)) {
      e.value = value_of(node.inputs[0]);  // the same memory; who reads it minds the order
    } else {
      operation(id, node, e);
    }
    return e;
  }

  /// Whether the reader can take over the input's terms.
  bool melts(NodeId input) const {
    const Expression& e = expressions_[index(input)];
    return e.value < 0 && e.act.curve == Curve::none && readers_[index(input)] == 1;
  }

  std::vector<Term> terms_of_sum(NodeId id, const Node& node, std::vector<NodeId>& nodes) {
    std::vector<Term> terms;
    for (const NodeId input : node.inputs) {
      const Expression& other = expression(input);
      if (melts(input) && other.terms.size() == 1 && other.terms[0].bias < 0) {
        terms.push_back(other.terms[0]);
        nodes.insert(nodes.begin(), other.nodes.begin(), other.nodes.end());
      } else {
        terms.push_back({.value = value_of(input)});
      }
    }
    // Norms have no padding channels; what else comes from the image may have some.
    if (at(terms[0].value).extent.c != at(terms[1].value).extent.c)
      for (Term& term : terms)
        if (term.norm < 0) term.value = with_channels(term.value, shapes_[index(id)].c);
    if (at(terms[0].value).extent != at(terms[1].value).extent)
      fail(Exit::device,
           "node '{}' adds tensors that the CUDA backend stores in different orders; flatten the sum instead",
           node.name);
    if (terms[0].norm < 0) std::swap(terms[0], terms[1]);
    return terms;
  }

  void operation(NodeId id, const Node& node, Expression& e) {
    Value value{.node = id, .nodes = {id}};
    const Shape& shape = shapes_[index(id)];
    value.extent = {shape.h, shape.w, shape.c};
    value.source = value_of(node.inputs[0]);
    int bias = -1;
    if (const auto* convolution = as<Convolution>(node)) {
      value.kind = ValueKind::convolution;
      value.window = {.k = convolution->out,
                      .r = convolution->kernel,
                      .s = convolution->kernel,
                      .pad = convolution->pad,
                      .stride = convolution->stride,
                      .groups = convolution->groups,
                      .weight = parameter_row(plan_, id, 0)};
      bias = parameter_row(plan_, id, 1);
      value.source =
          with_channels(value.source, copies_.rows[index(value.window.weight)].stored_c * convolution->groups);
      require_order(id, value.source);
      value.reads = at(value.source).extent;
    } else if (const auto* linear = as<Linear>(node)) {
      value.kind = ValueKind::convolution;
      value.window = {.k = linear->out, .weight = parameter_row(plan_, id, 0)};
      bias = parameter_row(plan_, id, 1);
      value.source = with_channels(value.source, copies_.rows[index(value.window.weight)].stored_c);
      value.reads = {1, 1, at(value.source).extent.count()};
    } else if (as<Pool>(node) || as<GlobalAveragePool>(node)) {
      value.kind = as<Pool>(node) ? ValueKind::pool : ValueKind::global_pool;
      value.extent.c = at(value.source).extent.c;
      require_order(id, value.source);
    } else if (as<LocalResponseNorm>(node) || as<Dropout>(node)) {
      value.kind = as<Dropout>(node) ? ValueKind::dropout : ValueKind::local_response;
      value.extent = at(value.source).extent;
      if (value.kind == ValueKind::local_response) require_order(id, value.source);
    } else {
      fail(Exit::device, "the CUDA backend doesn't know the operation of node '{}'; use --device cpu", node.name);
    }
    const int made = append(std::move(value));
    if (bias < 0) {
      e.value = made;
    } else {
      e.terms = {{.value = made, .bias = bias}};
      e.nodes.clear();  // the operation's own
    }
  }

  /// Flattened tensors stay n h w c in memory, which only linear layers and pointwise nodes may see.
  void require_order(NodeId id, int value) const {
    const Node& node = plan_.graph.nodes[index(id)];
    const Shape& shape = shapes_[index(node.inputs[0])];
    const Extent& extent = result_.values[index(value)].extent;
    if (shape.h != extent.h || shape.w != extent.w)
      fail(Exit::device,
           "node '{}' reads a flattened tensor of {} x {} pixels (the CUDA backend takes those into linear layers "
           "only); put a linear layer or a global pool before it",
           node.name, extent.h, extent.w);
  }

  Value& at(int value) { return result_.values[index(value)]; }
  Expression& expression(NodeId node) { return expressions_[index(node)]; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  int append(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<int>(result_.values.size()) - 1;
  }

  int value_of(NodeId node) {
    Expression& e = expression(node);
    if (e.value >= 0) return e.value;
    e.value = append({.kind = ValueKind::group,
                      .node = node,
                      .extent = at(e.terms[0].value).extent,
                      .terms = e.terms,
                      .act = e.act,
                      .nodes = e.nodes});
    return e.value;
  }

  /// The value with so many channels in memory: the image has more than the network's input, and what is made of it.
  int with_channels(int value, Index channels) {
    const Extent extent = at(value).extent;
    if (extent.c == channels) return value;
    for (std::size_t i = 0; i < result_.values.size(); ++i) {
      const Value& other = result_.values[i];
      if (other.kind == ValueKind::repack && other.source == value && other.extent.c == channels)
        return static_cast<int>(i);
    }
    return append(
        {.kind = ValueKind::repack, .node = at(value).node, .extent = {extent.h, extent.w, channels}, .source = value});
  }

  void append_logits() {
    const NodeId node = plan_.graph.logits();
    Expression& e = expression(node);
    Value logits{.kind = ValueKind::logits, .node = static_cast<NodeId>(plan_.graph.nodes.size()) - 1};
    const bool simple = e.value < 0 && e.act.curve == Curve::none && e.terms.size() == 1 && e.terms[0].norm < 0;
    logits.terms = {simple ? e.terms[0] : Term{.value = with_channels(value_of(node), plan_.graph.classes)}};
    logits.extent = at(logits.terms[0].value).extent;
    if (logits.extent.pixels() != 1)
      fail(Exit::device,
           "node '{}' makes logits of {} x {} pixels (the CUDA backend takes rows); put a linear layer or "
           "a global pool behind it",
           plan_.graph.nodes[index(node)].name, logits.extent.h, logits.extent.w);
    append(std::move(logits));
  }

  int add_norm(NodeId node, int value) {
    const auto& norms = plan_.table.norms;
    const auto found = std::find_if(norms.begin(), norms.end(), [&](const auto& n) { return n.node == node; });
    require(found != norms.end(), "a batch norm without statistics in the parameter table");
    result_.norms.push_back({.table = static_cast<int>(found - norms.begin()),
                             .node = node,
                             .value = value,
                             .scale = parameter_row(plan_, node, 0),
                             .shift = parameter_row(plan_, node, 1)});
    return static_cast<int>(result_.norms.size()) - 1;
  }

  void link() {
    for (std::size_t i = 0; i < result_.values.size(); ++i) {
      Value& value = result_.values[i];
      const int id = static_cast<int>(i);
      if (value.source >= 0) {
        at(value.source).operations.push_back(id);
        value.wants_gradient = at(value.source).wants_gradient;
      }
      if (value.kind == ValueKind::convolution) value.wants_gradient |= trains(value.window.weight);
      for (const Term& term : value.terms) {
        auto& groups = at(term.value).groups;
        if (groups.empty() || groups.back() != id) groups.push_back(id);
        value.wants_gradient |= at(term.value).wants_gradient || (term.bias >= 0 && trains(term.bias));
        if (term.norm < 0) continue;
        Norm& norm = result_.norms[index(term.norm)];
        norm.group = id;
        at(term.value).norms.push_back(term.norm);
        value.wants_gradient |= trains(norm.scale) || trains(norm.shift);
      }
    }
  }

  /// What the loss doesn't see is neither computed nor differentiated.
  void mark_used() {
    auto& values = result_.values;
    values.back().used = true;
    for (std::size_t i = values.size(); i-- > 0;) {
      Value& value = values[i];
      if (!value.used) {
        value.wants_gradient = false;
        continue;
      }
      if (value.source >= 0) at(value.source).used = true;
      for (const Term& term : value.terms) at(term.value).used = true;
    }
    for (Value& value : values) {
      const auto unused = [&](int reader) { return !at(reader).used; };
      std::erase_if(value.operations, unused);
      std::erase_if(value.groups, unused);
      std::erase_if(value.norms, [&](int norm) { return unused(result_.norms[index(norm)].group); });
    }
  }

  bool trains(int row) const { return plan_.table.rows[index(row)].trainable; }

  const Plan& plan_;
  const CopyLayout& copies_;
  const std::vector<Shape> shapes_;
  Lowering result_;
  std::vector<Expression> expressions_;
  std::vector<int> readers_;
};

}  // namespace

int parameter_row(const Plan& plan, NodeId node, std::size_t index) {
  const auto& parameters = plan.graph.nodes[static_cast<std::size_t>(node)].parameters;
  if (index >= parameters.size()) return -1;
  for (std::size_t i = 0; i < plan.table.rows.size(); ++i)
    if (plan.table.rows[i].name == parameters[index].name) return static_cast<int>(i);
  fail(Exit::internal, "internal error: parameter '{}' is not in the table", parameters[index].name);
}

Lowering lower(const Plan& plan, const CopyLayout& copies, Index height, Index width) {
  return Lowerer(plan, copies, height, width).run();
}

}  // namespace convoy::cuda
