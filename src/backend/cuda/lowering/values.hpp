// SPDX-License-Identifier: Apache-2.0
// The plan's nodes as this backend computes them. Pointwise nodes (batch norm, bias, add, activation) melt into
// *groups*
//   value = curve(term + term),   term = another value, a batch norm of it, or it plus a bias,
// which a kernel evaluates in one pass, or a convolution in front of itself. What is left are values that an operation
// makes, and groups. A linear layer is a 1x1 convolution over all it sees. Which form each operation takes, and so what
// is ever stored, comes later (recipe.hpp).
#pragma once
#include <vector>

#include "backend/cuda/filter_copies.hpp"
#include "backend/cuda/kernels/types.hpp"
#include "network/plan.hpp"

namespace convoy::cuda {

/// repack: the source with other padding channels. logits: what the loss sees, in fp32 rows.
enum class ValueKind : std::uint8_t {
  input,
  repack,
  convolution,
  pool,
  global_pool,
  local_response,
  dropout,
  group,
  logits
};

struct Term {
  int value = -1;
  int norm = -1;  ///< index into Lowering::norms; -1: the value itself
  int bias = -1;  ///< row of the parameter table; -1: none. Only in groups and logits of one term
};

/// n h w c in memory.
struct Extent {
  Index h = 1, w = 1, c = 0;
  Index pixels() const { return h * w; }
  Index count() const { return h * w * c; }
  bool operator==(const Extent&) const = default;
};

/// A convolution over values in memory; a linear layer sees 1x1 pixels of h*w*c channels.
struct Window {
  Index k = 0, r = 1, s = 1, pad = 0, stride = 1, groups = 1;
  int weight = -1;  ///< row of the parameter table
};

struct Value {
  ValueKind kind = ValueKind::input;
  NodeId node = 0;  ///< the operation's, or a group's last node
  Extent extent;
  int source = -1;          ///< operations: what they read
  Extent reads;             ///< convolutions: how they see it
  Window window;            ///< convolutions
  std::vector<Term> terms;  ///< groups: one or two, a norm first; logits: one
  Activating act;
  std::vector<NodeId> nodes;  ///< all nodes computed here

  std::vector<int> norms;       ///< batch norms over this value: it needs statistics
  std::vector<int> operations;  ///< values that are operations on this one
  std::vector<int> groups;      ///< groups (and logits) with a term of this one
  bool used = false;            ///< the loss depends on it
  bool wants_gradient = false;  ///< a trainable parameter lies at or before it

  bool joins() const { return terms.size() == 2; }
};

struct Norm {
  int table = 0;  ///< index into ParameterTable::norms
  NodeId node = 0;
  int value = 0;             ///< what it normalises
  int group = -1;            ///< where it is a term
  int scale = 0, shift = 0;  ///< rows of ParameterTable
};

struct Lowering {
  std::vector<Value> values;  ///< in an order in which they can be computed; [0] is the input, the last the logits
  std::vector<Norm> norms;
};

/// For images of height x width. Throws Error(device), naming the node, for what isn't possible here.
Lowering lower(const Plan& plan, const CopyLayout& copies, Index height, Index width);

/// Row of the node's `index`-th parameter; -1: it has fewer.
int parameter_row(const Plan& plan, NodeId node, std::size_t index);

}  // namespace convoy::cuda
