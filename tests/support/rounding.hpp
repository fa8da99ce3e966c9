// SPDX-License-Identifier: Apache-2.0
// What rounding may do to a network's results: one rule for every case, backend and instruction set. It knows the terms
// and the precision only, so it holds whatever order a machine adds up in.
//
// A sum of T rounded terms deviates by u sqrt(T) of its size (u = 2^-24 for fp32; Higham, Accuracy and Stability of
// Numerical Algorithms, 2002, section 2.8: rounding errors are independent, so n u becomes sqrt(n) u). A node rounds
// about 4 other things besides (products, normalisation, activation, storing). The errors of `depth` nodes with
// parameters may add up: depth u (4 + sqrt(T)), T being the longest sum of the step.
//
// Results and batch statistics are continuous in their inputs, gradients are not: where a ReLU's input or the lead of a
// maximum is smaller than its error, the unit may fall on either side. How many do depends on the usual error of a
// unit, in which the errors of the nodes before it add in squares, of forward sums only: twice sqrt(depth) u
// (4 + sqrt(T)). If a share s of a node's units is that near, half of the units being active, the node's gradient is
// wrong by sqrt(2 s) of its norm; these units may have up to three times the gradient of others: 4 sqrt(s). Errors of
// several nodes add in squares: 4 sqrt(sum of s).
#pragma once
#include <vector>

#include "network/graph.hpp"
#include "support/reference/tensor.hpp"

namespace convoy {

constexpr double fp32_unit = 0x1p-24;  ///< u: half the distance from 1 to the next number

/// Winograd's F(4,3) computes a 3x3 convolution from products whose noise its transforms magnify. Per dimension the
/// variance of an output's noise is the sum of |A|^2 |G|^2 |B|^2 over the 6 points (rows of the transforms with points
/// 0, 1, -1, 2, -2, infinity), 32 on average, against 3 of the direct form: sqrt(32 / 3) = 3.3, in two dimensions 10.7.
/// A sum has a ninth of the terms, which takes a factor of 3 away: rounded up, 4. The CPU's own points, 0, 5/8, -5/8,
/// 3/2, -3/2 and infinity, have 14 in place of 32, which makes 1.6. With stride 2 the outer taps have 6, and the middle
/// tap, which is not transformed, 1: 7 in place of 32, which makes 0.8. GPUs, whose kernels' names don't tell, are
/// granted the 4.
constexpr double winograd_gain = 4;

/// Nodes with parameters: each rounds on the way there and on the way back.
double depth_of(const Graph& graph);
/// depth u (4 + sqrt(T)), relative to the size of the values that a node computes.
double rounding_bound(const Graph& graph, const reference::Tensor& input);
/// How near to its kink a unit may fall on the wrong side, relative to the root mean square of the node's input.
double kink_reach(const Graph& graph);

/// Whether the derivative of this node jumps: ReLU and its kin, hard gates, max pooling.
bool has_kink(const Node& node);
/// A unit near its kink.
struct Tie {
  NodeId node = 0;
  double distance = 0;  ///< relative to the root mean square of the node's input; of a maximum: half of its lead
  double share = 0;     ///< 1 / units of the node
};
/// Adds the units of `nodes[id]`, whose (last) input is `x`, that lie within `distance` of their kinks.
void find_ties(const Graph& graph, NodeId id, const reference::Tensor& x, double distance, std::vector<Tie>& to);
/// What rounding and the ties within `reach` may do to gradients, relative to their norms.
double gradient_bound(double rounding, const std::vector<Tie>& ties, double reach);

}  // namespace convoy
