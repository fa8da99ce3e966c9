// SPDX-License-Identifier: Apache-2.0
#include "support/reference/network.hpp"

#include <algorithm>
#include <stdexcept>

#include "support/reference/operations.hpp"

namespace convoy::reference {
namespace {

Values slice(const Values& block, Range range) { return {block.begin() + range.begin, block.begin() + range.end()}; }

class Run {
 public:
  Run(const Plan& plan, const NetworkInput& input) : plan_(plan), input_(input), states_(plan.graph.nodes.size()) {
    result_.gradients.assign(static_cast<std::size_t>(plan.table.parameters.count), 0.0);
    result_.statistics.assign(static_cast<std::size_t>(plan.table.statistics.count), 0.0);
  }

  NetworkResult operator()() {
    const std::vector<Node>& nodes = plan_.graph.nodes;
    states_.front().output.y = *input_.x;
    result_.loss.assign(static_cast<std::size_t>(input_.x->n), 0.0);
    for (std::size_t id = 1; id < nodes.size(); ++id) {
      if (const auto* loss = as<Loss>(nodes[id]))
        run_loss(*loss, states_[static_cast<std::size_t>(nodes[id].inputs[0])]);
      else
        run_forward(nodes[id], states_[id]);
    }
    result_.logits = states_[static_cast<std::size_t>(plan_.graph.logits())].output.y;
    for (std::size_t id = nodes.size() - 1; id-- > 1;) run_backward(nodes[id], states_[id]);
    result_.dx = states_.front().dy;
    return std::move(result_);
  }

 private:
  struct State {
    Output output;
    std::vector<Values> parameters;
    Values running_mean, running_variance, factors;
    Tensor dy;
  };

  Operands operands_of(const Node& node, const State& state) const {
    Operands operands;
    for (const NodeId from : node.inputs) operands.x.push_back(&states_[static_cast<std::size_t>(from)].output.y);
    for (const Values& parameter : state.parameters) operands.parameters.push_back(&parameter);
    if (!state.factors.empty()) operands.factors = &state.factors;
    if (!state.running_mean.empty()) {
      operands.running_mean = &state.running_mean;
      operands.running_variance = &state.running_variance;
    }
    return operands;
  }

  const NormStatistics* norm_of(const Node& node) const {
    for (const NormStatistics& norm : plan_.table.norms) {
      if (&plan_.graph.nodes[static_cast<std::size_t>(norm.node)] == &node) return &norm;
    }
    return nullptr;
  }

  void run_forward(const Node& node, State& state) {
    const auto id = static_cast<NodeId>(&node - plan_.graph.nodes.data());
    for (const ParameterSpec& spec : node.parameters) {
      const Parameter* row = plan_.table.find(spec.name);
      if (row == nullptr) throw std::logic_error("no such parameter: " + spec.name);
      state.parameters.push_back(slice(*input_.values, row->range));
    }
    const NormStatistics* const norm = norm_of(node);
    if (norm != nullptr && input_.statistics != nullptr) {
      state.running_mean = slice(*input_.statistics, norm->mean);
      state.running_variance = slice(*input_.statistics, norm->variance);
    }
    if (const auto* dropout = as<Dropout>(node); dropout != nullptr && input_.statistics == nullptr) {
      const Tensor& x = states_[static_cast<std::size_t>(node.inputs[0])].output.y;
      state.factors = dropout_factors(*dropout, x, input_.step, id, input_.samples).values;
    }
    const Operands operands = operands_of(node, state);
    state.output = forward(node, operands);
    find_ties(plan_.graph, id, *operands.x.back(), input_.tie_distance, result_.ties);
    if (norm == nullptr) return;
    const Tensor& x = state.output.y;
    const double count = static_cast<double>(x.n * x.h * x.w);
    std::copy(state.output.mean.begin(), state.output.mean.end(), result_.statistics.begin() + norm->mean.begin);
    std::transform(state.output.variance.begin(), state.output.variance.end(),
                   result_.statistics.begin() + norm->variance.begin,
                   [&](double v) { return v * count / (count - 1); });
  }

  void run_loss(const Loss& loss, State& logits) {
    const Values own = loss_forward(loss, logits.output.y, input_.samples);
    for (std::size_t i = 0; i < own.size(); ++i) result_.loss[i] += own[i];
    logits.dy = loss_backward(loss, logits.output.y, input_.samples, input_.scale);
  }

  void run_backward(const Node& node, State& state) {
    if (state.dy.values.empty()) return;  // nothing that reaches the loss reads it
    const Gradient gradient = backward(node, operands_of(node, state), state.output, state.dy);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Tensor& to = states_[static_cast<std::size_t>(node.inputs[i])].dy;
      if (to.values.empty()) to = Tensor::like(gradient.dx[i]);
      for (std::size_t j = 0; j < to.values.size(); ++j) to.values[j] += gradient.dx[i].values[j];
    }
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      const Range range = plan_.table.find(node.parameters[i].name)->range;
      std::copy(gradient.dparameters[i].begin(), gradient.dparameters[i].end(),
                result_.gradients.begin() + range.begin);
    }
    state.dy = {};
  }

  const Plan& plan_;
  const NetworkInput& input_;
  std::vector<State> states_;
  NetworkResult result_;
};

}  // namespace

NetworkResult run_network(const Plan& plan, const NetworkInput& input) { return Run(plan, input)(); }

}  // namespace convoy::reference
