// SPDX-License-Identifier: Apache-2.0
#include "support/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/reference/operations.hpp"

namespace convoy {

using reference::Tensor;

namespace {

/// Over inputs of a convolution or linear layer: what a forward pass adds up. (A norm's sums are means: their errors
/// shrink with the number of terms.)
Index longest_forward_sum(const Graph& graph) {
  Index longest = 1;
  for (const Node& node : graph.nodes) {
    if (const auto* conv = as<Convolution>(node))
      longest = std::max(longest, conv->in / conv->groups * conv->kernel * conv->s());
    if (const auto* linear = as<Linear>(node)) longest = std::max(longest, linear->in);
  }
  return longest;
}

/// Also over outputs and over the pixels of a batch: gradients of inputs and of parameters.
Index longest_sum(const Graph& graph, const Tensor& input) {
  const std::vector<Shape> shapes = infer_shapes(graph, input.h, input.w);
  Index longest = longest_forward_sum(graph);
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    longest = std::max(longest, input.n * shapes[id].h * shapes[id].w);
    if (const auto* conv = as<Convolution>(node))
      longest = std::max(longest, conv->out / conv->groups * conv->kernel * conv->s());
    if (const auto* linear = as<Linear>(node)) longest = std::max(longest, linear->out);
  }
  return longest;
}

double rounding_of(Index terms) { return fp32_unit * (4 + std::sqrt(static_cast<double>(terms))); }

}  // namespace

double depth_of(const Graph& graph) {
  return static_cast<double>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return !node.parameters.empty(); }));
}

double rounding_bound(const Graph& graph, const Tensor& input) {
  return depth_of(graph) * rounding_of(longest_sum(graph, input));
}

double kink_reach(const Graph& graph) {
  return 2 * std::sqrt(depth_of(graph)) * rounding_of(longest_forward_sum(graph));
}

double gradient_bound(double rounding, const std::vector<Tie>& ties, double reach) {
  double tied = 0;
  for (const Tie& tie : ties) tied += tie.distance < reach ? tie.share : 0;
  return rounding + 4 * std::sqrt(tied);
}

bool has_kink(const Node& node) {
  if (const auto* activation = as<Activation>(node)) {
    switch (activation->kind) {
      case ActivationKind::relu:
      case ActivationKind::leaky_relu:
      case ActivationKind::relu6:
      case ActivationKind::hard_swish:
        return true;
      case ActivationKind::identity:
      case ActivationKind::tanh:
      case ActivationKind::gelu:
      case ActivationKind::silu:
      case ActivationKind::scale:
        return false;
    }
  }
  if (const auto* gate = as<ChannelGate>(node)) return gate->gate == GateKind::hard_sigmoid;
  const auto* pool = as<Pool>(node);
  return pool != nullptr && pool->mode == Pool::Mode::max;
}

namespace {

/// Calls use(lead) for every window: how much larger the maximum is than the next. Behind a ReLU a maximum of 0 has no
/// gradient, whoever wins.
template <class Use>
void for_each_lead(const Pool& pool, const Tensor& x, const Use& use) {
  for (Index plane = 0; plane < x.n * x.c; ++plane) {
    for (Index p = 0; p < reference::pooled_size(pool, x.h); ++p) {
      for (Index q = 0; q < reference::pooled_size(pool, x.w); ++q) {
        const Index top = p * pool.stride - pool.pad, left = q * pool.stride - pool.pad;
        double first = -std::numeric_limits<double>::infinity(), second = first;
        for (Index r = std::max<Index>(0, top); r < std::min(x.h, top + pool.kernel); ++r) {
          for (Index s = std::max<Index>(0, left); s < std::min(x.w, left + pool.kernel); ++s) {
            const double value = x.at(plane / x.c, plane % x.c, r, s);
            second = std::max(second, std::min(first, value));
            first = std::max(first, value);
          }
        }
        use(first == 0 ? std::numeric_limits<double>::infinity() : first - second);
      }
    }
  }
}

}  // namespace

void find_ties(const Graph& graph, NodeId id, const Tensor& x, double distance, std::vector<Tie>& to) {
  const Node& node = graph.nodes[static_cast<std::size_t>(id)];
  if (!has_kink(node)) return;
  double squares = 0;
  for (const double value : x.values) squares += value * value;
  const double size = std::sqrt(squares / static_cast<double>(x.count()));
  const std::size_t begin = to.size();
  Index units = 0;
  const auto add = [&](double from_kink) {
    ++units;
    if (from_kink < distance * size) to.push_back({id, from_kink / size, 0});
  };
  if (const auto* pool = as<Pool>(node)) {
    for_each_lead(*pool, x, [&](double lead) { add(lead / 2); });
  } else {
    const auto* activation = as<Activation>(node);
    const bool bends_at_6 = activation && activation->kind == ActivationKind::relu6;
    const bool bends_at_3 = !activation || activation->kind == ActivationKind::hard_swish;  // else it is a gate
    for (const double value : x.values) {
      const double from_0 = std::abs(value);
      add(bends_at_3 ? std::abs(from_0 - 3) : bends_at_6 ? std::min(from_0, std::abs(value - 6)) : from_0);
    }
  }
  for (std::size_t i = begin; i < to.size(); ++i) to[i].share = 1 / static_cast<double>(units);
}

}  // namespace convoy
