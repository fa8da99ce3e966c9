// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lowering.hpp"

#include <algorithm>
#include <utility>

#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

CurveShape shape_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::identity:
      return CurveShape::identity;
    case ActivationKind::relu:
    case ActivationKind::leaky_relu:
      return CurveShape::rectifier;
    case ActivationKind::tanh:
      return CurveShape::tanh;
    case ActivationKind::gelu:
    case ActivationKind::silu:
      break;
  }
  fail(Exit::usage, "the CPU has no {} yet", describe(Activation{kind}));
}

/// A node's output before it is decided whether it becomes a value of its own.
struct Expression {
  int value = -1;  ///< already a value
  std::vector<Term> terms;
  CurveShape curve = CurveShape::identity;
  float slope = 0;
  std::vector<NodeId> nodes;
};

class Lowerer {
 public:
  explicit Lowerer(const Plan& plan) : plan_(plan) {
    const auto& nodes = plan.graph.nodes;
    expressions_.resize(nodes.size());
    readers_.resize(nodes.size());
    for (const Node& node : nodes)
      for (const NodeId input : node.inputs) ++readers_[static_cast<std::size_t>(input)];
  }

  Lowering run() {
    const auto& nodes = plan_.graph.nodes;
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) expressions_[i] = express(static_cast<NodeId>(i), nodes[i]);
    result_.logits = in_form(value_of(plan_.graph.logits()), Form::features, plan_.graph.logits());
    link();
    return std::move(result_);
  }

 private:
  Expression express(NodeId id, const Node& node) {
    Expression e;
    e.nodes = {id};
    if (as<Input>(node)) {
      e.value = append({.kind = ValueKind::input, .node = id, .form = Form::image, .nodes = {id}});
    } else if (as<BatchNorm>(node)) {
      int value = value_of(node.inputs[0]);
      if (at(value).form == Form::image) value = in_form(value, Form::spatial, id);
      e.terms = {{value, add_norm(id, value)}};
    } else if (as<Add>(node)) {
      for (const NodeId input : node.inputs) {
        const Expression& other = expression(input);
        const bool melts = other.value < 0 && other.curve == CurveShape::identity && other.terms.size() == 1 &&
                           readers_[static_cast<std::size_t>(input)] == 1;
        if (melts) {
          e.terms.push_back(other.terms[0]);
          e.nodes.insert(e.nodes.begin(), other.nodes.begin(), other.nodes.end());
        } else {
          e.terms.push_back({value_of(input), -1});
        }
      }
      make_alike(e.terms, id);
    } else if (const auto* activation = as<Activation>(node)) {
      const NodeId input = node.inputs[0];
      const Expression& other = expression(input);
      if (other.value < 0 && other.curve == CurveShape::identity && readers_[static_cast<std::size_t>(input)] == 1) {
        e.terms = other.terms;
        e.nodes.insert(e.nodes.begin(), other.nodes.begin(), other.nodes.end());
      } else {
        int value = value_of(input);
        if (at(value).form == Form::image) value = in_form(value, Form::spatial, id);
        e.terms = {{value, -1}};
      }
      e.curve = shape_of(activation->kind);
      e.slope = activation->kind == ActivationKind::leaky_relu ? activation->slope : 0;
    } else if (as<Flatten>(node)) {
      e.value = in_form(value_of(node.inputs[0]), Form::features, id);
    } else {
      e.value = operation(id, node);
    }
    return e;
  }

  int operation(NodeId id, const Node& node) {
    Value value{.node = id, .nodes = {id}};
    int source = value_of(node.inputs[0]);
    if (as<Convolution>(node)) {
      value.kind = ValueKind::convolution;  // the only operation that reads the image as it is
      if (at(source).form == Form::features) source = in_form(source, Form::spatial, id);
    } else if (as<Pool>(node) || as<GlobalAveragePool>(node)) {
      value.kind = as<Pool>(node) ? ValueKind::pool : ValueKind::global_pool;
      source = in_form(source, Form::spatial, id);
      if (value.kind == ValueKind::global_pool) value.form = Form::features;
    } else if (as<LocalResponseNorm>(node)) {
      value.kind = ValueKind::local_response;
      source = in_form(source, Form::spatial, id);
    } else if (as<Dropout>(node)) {
      value.kind = ValueKind::dropout;
      if (at(source).form == Form::image) source = in_form(source, Form::spatial, id);
      value.form = at(source).form;
    } else if (as<Linear>(node)) {
      value.kind = ValueKind::linear;
      value.form = Form::features;
      source = in_form(source, Form::features, id);
    } else {
      fail(Exit::internal, "internal error: the CPU backend doesn't know the operation of node '{}'", node.name);
    }
    value.source = source;
    return append(std::move(value));
  }

  /// Both terms of an Add in one form: features where both are, else the program's layout.
  void make_alike(std::vector<Term>& terms, NodeId node) {
    const bool features =
        std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return at(t.value).form == Form::features; });
    for (Term& term : terms) {
      const Form form = features ? Form::features : Form::spatial;
      if (at(term.value).form == form) continue;
      if (term.norm >= 0) term = {make_group({.terms = {term}}, node), -1};
      term.value = in_form(term.value, form, node);
    }
  }

  Value& at(int value) { return result_.values[static_cast<std::size_t>(value)]; }
  Expression& expression(NodeId node) { return expressions_[static_cast<std::size_t>(node)]; }

  int append(Value value) {
    result_.values.push_back(std::move(value));
    return static_cast<int>(result_.values.size()) - 1;
  }

  int make_group(const Expression& e, NodeId node) {
    Value value{.kind = ValueKind::group, .node = node, .form = at(e.terms[0].value).form, .terms = e.terms};
    value.curve = e.curve;
    value.slope = e.slope;
    value.nodes = e.nodes;
    return append(std::move(value));
  }

  int value_of(NodeId node) {
    Expression& e = expression(node);
    if (e.value < 0) e.value = make_group(e, node);
    return e.value;
  }

  /// The value itself, or a conversion of it: one for all that want the same.
  int in_form(int value, Form form, NodeId node) {
    if (at(value).form == form) return value;
    for (std::size_t i = 0; i < result_.values.size(); ++i) {
      const Value& other = result_.values[i];
      if (other.kind == ValueKind::convert && other.source == value && other.form == form) return static_cast<int>(i);
    }
    return append({.kind = ValueKind::convert, .node = node, .form = form, .source = value});
  }

  int add_norm(NodeId node, int value) {
    const auto& norms = plan_.table.norms;
    const auto found = std::find_if(norms.begin(), norms.end(), [&](const auto& n) { return n.node == node; });
    require(found != norms.end(), "a batch norm without statistics in the parameter table");
    Norm norm;
    norm.table = static_cast<int>(found - norms.begin());
    norm.node = node;
    norm.value = value;
    norm.scale = parameter_row(plan_.table, node, 0, plan_.graph);
    norm.shift = parameter_row(plan_.table, node, 1, plan_.graph);
    result_.norms.push_back(norm);
    return static_cast<int>(result_.norms.size()) - 1;
  }

  void link() {
    auto& values = result_.values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      Value& value = values[i];
      const int id = static_cast<int>(i);
      if (value.source >= 0) {
        at(value.source).operations.push_back(id);
        value.wants_gradient = at(value.source).wants_gradient;
      }
      for (const Term& term : value.terms) {
        auto& groups = at(term.value).groups;
        if (groups.empty() || groups.back() != id) groups.push_back(id);
        value.wants_gradient = value.wants_gradient || at(term.value).wants_gradient;
        if (term.norm < 0) continue;
        Norm& norm = result_.norms[static_cast<std::size_t>(term.norm)];
        norm.group = id;
        at(term.value).norms.push_back(term.norm);
        value.wants_gradient = value.wants_gradient || trainable(norm.node);
      }
      if (value.kind == ValueKind::convolution || value.kind == ValueKind::linear)
        value.wants_gradient = value.wants_gradient || trainable(value.node);
    }
    mark_used();
    for (Value& value : values) {
      const bool one_phase =
          !value.operations.empty() && std::all_of(value.operations.begin(), value.operations.end(), [&](int reader) {
            const ValueKind kind = at(reader).kind;
            const bool alone = kind == ValueKind::pool || kind == ValueKind::local_response;
            return kind == ValueKind::convolution || (alone && value.operations.size() == 1);
          });
      value.stored = !(value.kind == ValueKind::group && value.terms.size() == 1 && one_phase && value.groups.empty() &&
                       value.norms.empty());
    }
  }

  /// What the loss doesn't see is neither computed nor differentiated.
  void mark_used() {
    auto& values = result_.values;
    at(result_.logits).used = true;
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
      std::erase_if(value.operations, [&](int reader) { return !at(reader).used; });
      std::erase_if(value.groups, [&](int reader) { return !at(reader).used; });
      std::erase_if(value.norms, [&](int n) { return !at(result_.norms[static_cast<std::size_t>(n)].group).used; });
    }
  }

  bool trainable(NodeId node) const {
    return std::any_of(plan_.table.rows.begin(), plan_.table.rows.end(),
                       [&](const Parameter& row) { return row.node == node && row.trainable; });
  }

  const Plan& plan_;
  Lowering result_;
  std::vector<Expression> expressions_;
  std::vector<int> readers_;
};

}  // namespace

int parameter_row(const ParameterTable& table, NodeId node, std::size_t index, const Graph& graph) {
  const auto& parameters = graph.nodes[static_cast<std::size_t>(node)].parameters;
  if (index >= parameters.size()) return -1;
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (table.rows[i].name == parameters[index].name) return static_cast<int>(i);
  fail(Exit::internal, "internal error: parameter '{}' is not in the table", parameters[index].name);
}

Lowering lower(const Plan& plan) { return Lowerer(plan).run(); }

}  // namespace convoy::cpu
