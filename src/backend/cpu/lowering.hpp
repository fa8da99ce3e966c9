// SPDX-License-Identifier: Apache-2.0
// The plan's nodes as the CPU backend computes them. Pointwise nodes (batch norm, add, activation) melt into *groups*
//   value = curve(term + term),   term = another value, or a batch norm of it,
// which are evaluated where they are used: in front of a convolution, on a tile of images. What is left are values that
// an operation makes, and groups. Depends on the plan only, never on sizes, precision or machine: the stage table
// follows it.
#pragma once
#include <string>
#include <vector>

#include "backend/cpu/kernels.hpp"
#include "network/plan.hpp"

namespace convoy::cpu {

enum class ValueKind : std::uint8_t {
  input,
  convert,
  convolution,
  pool,
  local_response,
  global_pool,
  linear,
  dropout,
  group
};

/// image: what the input stage makes. spatial: the program's layout and precision. features: fp32 rows [n][c], what
/// linear layers and the loss see.
enum class Form : std::uint8_t { image, spatial, features };

struct Term {
  int value = -1;
  int norm = -1;  ///< index into Lowering::norms; -1: the value itself
};

struct Value {
  ValueKind kind = ValueKind::input;
  NodeId node = 0;  ///< the operation's, or a group's last node
  Form form = Form::spatial;
  int source = -1;          ///< operations: what they read
  std::vector<Term> terms;  ///< groups: one or two
  CurveShape curve = CurveShape::identity;
  float slope = 0;
  std::vector<NodeId> nodes;  ///< all nodes computed here, for describe()

  std::vector<int> norms;       ///< batch norms over this value: it needs statistics
  std::vector<int> operations;  ///< values that are operations on this one
  std::vector<int> groups;      ///< groups with a term of this one
  bool stored = true;           ///< false: only ever a tile in front of the one phase that reads it
  bool used = false;            ///< the loss depends on it
  bool wants_gradient = false;  ///< a trainable parameter lies at or before it
};

struct Norm {
  int table = 0;  ///< index into ParameterTable::norms
  NodeId node = 0;
  int value = 0;             ///< what it normalises
  int group = -1;            ///< where it is a term
  int scale = 0, shift = 0;  ///< rows of ParameterTable
};

struct Lowering {
  std::vector<Value> values;  ///< in an order in which they can be computed; [0] is the input
  std::vector<Norm> norms;
  int logits = 0;  ///< a value in features form
};

/// Throws Error(internal) for an operation it doesn't know.
Lowering lower(const Plan& plan);

/// Row of the node's `index`-th parameter; -1: it has fewer.
int parameter_row(const ParameterTable& table, NodeId node, std::size_t index, const Graph& graph);

}  // namespace convoy::cpu
