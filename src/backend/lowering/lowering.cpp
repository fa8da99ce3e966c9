// SPDX-License-Identifier: Apache-2.0
#include "backend/lowering/lowering.hpp"

#include <algorithm>
#include <utility>

#include "core/errors.hpp"

namespace convoy::lowering {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// A node's output before it is known whether it becomes a value of its own.
struct Output {
  int value = -1;  ///< it is a value already
  std::vector<Term> terms;
  ActivationKind activation = ActivationKind::identity;
  float slope = 0;
  std::vector<NodeId> nodes;

  /// A sum that a reader can take over.
  bool open() const { return value < 0 && activation == ActivationKind::identity; }
};

class Lowerer {
 public:
  Lowerer(const Plan& plan, const LayoutPolicy& policy, Mode mode) : plan_(plan), policy_(policy), mode_(mode) {
    const auto& nodes = plan.graph.nodes;
    outputs_.resize(nodes.size());
    readers_.resize(nodes.size());
    for (const Node& node : nodes)
      for (const NodeId input : node.inputs) ++readers_[index(input)];
  }

  Lowering run() {
    const auto& nodes = plan_.graph.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) outputs_[i] = lower_node(static_cast<NodeId>(i), nodes[i]);
    link();
    mark_used();
    return std::move(result_);
  }

 private:
  Output lower_node(NodeId id, const Node& node) {
    Output output;
    output.nodes = {id};
    if (as<BatchNorm>(node)) {
      const int value = read(id)[0];
      output.terms = {{.value = value, .norm = add_norm(id, value)}};
    } else if (as<Add>(node)) {
      add_sum(id, node, output);
    } else if (const auto* activation = as<Activation>(node)) {
      const Output& input = outputs_[index(node.inputs[0])];
      if (fuses(node.inputs[0])) {
        output.terms = input.terms;
        take_nodes(output, input);
      } else {
        output.terms = {{.value = read(id)[0]}};
      }
      output.activation = activation->kind;
      output.slope = activation->slope;
    } else if (as<Loss>(node)) {
      output.value = append_loss(id, node.inputs[0]);
    } else if (as<Flatten>(node)) {
      output.value = read(id)[0];
    } else {
      add_operation(id, node, output);
    }
    return output;
  }

  /// Whether the only reader of a node can take over its terms.
  bool fuses(NodeId node) const { return outputs_[index(node)].open() && readers_[index(node)] == 1; }

  static void take_nodes(Output& to, const Output& from) {
    to.nodes.insert(to.nodes.begin(), from.nodes.begin(), from.nodes.end());
  }

  void add_sum(NodeId id, const Node& node, Output& output) {
    std::vector<Layout> layouts;
    for (const NodeId input : node.inputs) {
      const Output& other = outputs_[index(input)];
      if (fuses(input) && other.terms.size() == 1 && other.terms[0].bias < 0) {
        output.terms.push_back(other.terms[0]);
        take_nodes(output, other);
      } else {
        output.terms.push_back({.value = value_of(input)});
      }
      layouts.push_back(at(output.terms.back().value).layout);
    }
    policy_.reads(id, layouts);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      Term& term = output.terms[i];
      if (at(term.value).layout == layouts[i]) continue;
      if (term.norm >= 0) term = {.value = append_group({.terms = {term}}, id)};
      term.value = in_layout(term.value, layouts[i]);
    }
  }

  void add_operation(NodeId id, const Node& node, Output& output) {
    Value value{.kind = node.inputs.empty() ? ValueKind::input : ValueKind::operation, .node = id, .nodes = {id}};
    value.sources = read(id);
    std::vector<Layout> layouts;
    for (const int source : value.sources) layouts.push_back(at(source).layout);
    value.layout = policy_.makes(id, layouts);
    const int made = append(std::move(value));
    const int bias = bias_term(id);
    if (bias < 0) {
      output.value = made;
    } else {
      output.terms = {{.value = made, .bias = bias}};
      output.nodes.clear();  // they are the operation's
    }
  }

  /// Row of the bias that becomes a term behind its operation; -1: there is none.
  int bias_term(NodeId node) const {
    const auto& parameters = plan_.graph.nodes[index(node)].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (policy_.bias_is_term() && parameters[i].kind == Kind::bias) return parameter_row(plan_, node, i);
    return -1;
  }

  int append_loss(NodeId id, NodeId from) {
    const Output& logits = outputs_[index(from)];
    Value loss{.kind = ValueKind::loss, .node = id};
    const bool taken = logits.open() && logits.terms.size() == 1 && logits.terms[0].norm < 0;
    loss.terms = {taken ? logits.terms[0] : Term{.value = value_of(from)}};
    loss.layout = at(loss.terms[0].value).layout;
    policy_.reads(id, {&loss.layout, 1});
    loss.terms[0].value = in_layout(loss.terms[0].value, loss.layout);
    return append(std::move(loss));
  }

  Value& at(int value) { return result_.values[index(value)]; }

  int append(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<int>(result_.values.size()) - 1;
  }

  int append_group(const Output& output, NodeId node) {
    return append({.kind = ValueKind::group,
                   .node = node,
                   .layout = at(output.terms[0].value).layout,
                   .terms = output.terms,
                   .activation = output.activation,
                   .slope = output.slope,
                   .nodes = output.nodes});
  }

  int value_of(NodeId node) {
    Output& output = outputs_[index(node)];
    if (output.value < 0) output.value = append_group(output, node);
    return output.value;
  }

  /// The values of a node's inputs, in the layouts in which it wants to read them.
  std::vector<int> read(NodeId id) {
    std::vector<int> values;
    std::vector<Layout> layouts;
    for (const NodeId input : plan_.graph.nodes[index(id)].inputs) {
      values.push_back(value_of(input));
      layouts.push_back(at(values.back()).layout);
    }
    if (!values.empty()) policy_.reads(id, layouts);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = in_layout(values[i], layouts[i]);
    return values;
  }

  int in_layout(int value, const Layout& layout) {
    if (at(value).layout == layout) return value;
    for (std::size_t i = 0; i < result_.values.size(); ++i) {
      const Value& other = result_.values[i];
      if (other.kind == ValueKind::conversion && other.sources[0] == value && other.layout == layout)
        return static_cast<int>(i);
    }
    return append({.kind = ValueKind::conversion, .node = at(value).node, .layout = layout, .sources = {value}});
  }

  int add_norm(NodeId node, int value) {
    const auto& norms = plan_.table.norms;
    const auto found = std::find_if(norms.begin(), norms.end(), [&](const auto& n) { return n.node == node; });
    require(found != norms.end(), "a batch norm without statistics in the parameter table");
    result_.norms.push_back({.table = static_cast<int>(found - norms.begin()),
                             .node = node,
                             .value = value,
                             .scale = parameter_row(plan_, node, 0),
                             .shift = parameter_row(plan_, node, 1),
                             .frozen = found->frozen});
    return static_cast<int>(result_.norms.size()) - 1;
  }

  void link() {
    for (std::size_t i = 0; i < result_.values.size(); ++i) {
      Value& value = result_.values[i];
      const int id = static_cast<int>(i);
      for (const int source : value.sources) {
        at(source).operations.push_back(id);
        value.wants_gradient |= at(source).wants_gradient;
      }
      if (value.kind == ValueKind::operation) value.wants_gradient |= trains(value.node, bias_term(value.node));
      for (const Term& term : value.terms) {
        auto& groups = at(term.value).groups;
        if (groups.empty() || groups.back() != id) groups.push_back(id);
        value.wants_gradient |= at(term.value).wants_gradient || (term.bias >= 0 && row(term.bias).trainable);
        if (term.norm < 0) continue;
        Norm& norm = result_.norms[index(term.norm)];
        norm.group = id;
        if (!norm.frozen) at(term.value).norms.push_back(term.norm);
        value.wants_gradient |= trains(norm.node, -1);
      }
    }
  }

  /// What the loss doesn't see is neither computed nor differentiated.
  void mark_used() {
    auto& values = result_.values;
    for (Value& value : values) value.used = value.kind == ValueKind::loss && mode_ == Mode::train;
    values.back().used = true;
    for (std::size_t i = values.size(); i-- > 0;) {
      Value& value = values[i];
      if (!value.used) {
        value.wants_gradient = false;
        continue;
      }
      for (const int source : value.sources) at(source).used = true;
      for (const Term& term : value.terms) at(term.value).used = true;
    }
    for (Value& value : values) {
      const auto unused = [&](int reader) { return !at(reader).used; };
      std::erase_if(value.operations, unused);
      std::erase_if(value.groups, unused);
      std::erase_if(value.norms, [&](int norm) { return !result_.used(result_.norm(norm)); });
    }
  }

  const Parameter& row(int id) const { return plan_.table.rows[index(id)]; }

  /// Whether any parameter of the node is trained, the row `except` aside.
  bool trains(NodeId node, int except) const {
    for (std::size_t i = 0; i < plan_.table.rows.size(); ++i) {
      const Parameter& parameter = plan_.table.rows[i];
      if (parameter.node == node && parameter.trainable && static_cast<int>(i) != except) return true;
    }
    return false;
  }

  const Plan& plan_;
  const LayoutPolicy& policy_;
  const Mode mode_;
  Lowering result_;
  std::vector<Output> outputs_;
  std::vector<int> readers_;
};

}  // namespace

Lowering lower(const Plan& plan, const LayoutPolicy& policy, Mode mode) { return Lowerer(plan, policy, mode).run(); }

int parameter_row(const Plan& plan, NodeId node, std::size_t index) {
  const auto& parameters = plan.graph.nodes[static_cast<std::size_t>(node)].parameters;
  if (index >= parameters.size()) return -1;
  const auto& rows = plan.table.rows;
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.name == parameters[index].name; });
  if (found == rows.end())
    fail(Exit::internal, "internal error: parameter '{}' is not in the table", parameters[index].name);
  return static_cast<int>(found - rows.begin());
}

}  // namespace convoy::lowering
