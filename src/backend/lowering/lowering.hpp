// SPDX-License-Identifier: Apache-2.0
// What every backend does to a plan before it knows a kernel. Pointwise nodes (batch norm, add, activation, and the
// bias where a backend wants that) are fused into *groups*
//   value = activation(term + term),   term = another value, a batch norm of it, or it plus a bias.
// What is left are values that an operation makes, and groups. A backend evaluates a group where it is used, or stores
// it. Which operation a value is, only its node says: nothing here depends on the list of operations.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "network/operations/activation_kind.hpp"
#include "network/plan.hpp"

namespace convoy::lowering {

/// operation: what the node's operation makes of `sources`; concatenation has several. conversion: the source in
/// another layout. loss: its one term are the logits; the last value is the network's own loss, others are those of
/// auxiliary heads.
enum class ValueKind : std::uint8_t { input, operation, conversion, group, loss };

/// How a value lies in memory. The backend says what `order` means, and whether it tells sizes here.
struct Layout {
  int order = 0;
  Index h = 0, w = 0, c = 0;  ///< sizes of one sample in memory
  bool operator==(const Layout&) const = default;
};

struct Term {
  int value = -1;
  int norm = -1;  ///< index into Lowering::norms; -1: no batch norm
  int bias =
      -1;  ///< row of the parameter table; -1: no bias. Only where the backend asks for it, in groups of one term
};

struct Value {
  ValueKind kind = ValueKind::input;
  NodeId node = 0;  ///< the operation's, a group's last one, or the one whose value is converted
  Layout layout;
  std::vector<int>
      sources;              ///< the values that an operation or a conversion reads, in order; one may stand there twice
  std::vector<Term> terms;  ///< a group has one or two, in the order of the sum; the loss has one
  ActivationKind activation = ActivationKind::identity;  ///< only groups have one
  float slope = 0;                                       ///< of leaky_relu and scale
  std::vector<NodeId> nodes;                             ///< all nodes that are computed here, for texts

  // Who reads this value. What the loss doesn't depend on is left out.
  std::vector<int> norms;       ///< batch norms that aren't frozen: the value needs statistics
  std::vector<int> operations;  ///< operations and conversions; one that reads it twice stands there twice
  std::vector<int> groups;      ///< groups (and the loss) with a term of this value, each once
  bool used = false;            ///< the loss depends on it
  bool wants_gradient = false;  ///< a trainable parameter lies at or before it
};

struct Norm {
  int table = 0;  ///< index into ParameterTable::norms
  NodeId node = 0;
  int value = 0;             ///< the value that it normalises
  int group = -1;            ///< the group in which it is a term
  int scale = 0, shift = 0;  ///< rows of ParameterTable
  bool frozen = false;       ///< it takes running statistics in training too
};

struct Lowering {
  std::vector<Value> values;  ///< each after those that it reads; [0] is the input, the last one the loss
  std::vector<Norm> norms;
  const Value& value(int id) const { return values[static_cast<std::size_t>(id)]; }
  const Norm& norm(int id) const { return norms[static_cast<std::size_t>(id)]; }
  /// The value that the loss reads.
  int logits() const { return values.back().terms[0].value; }
  /// The term is a norm of the batch's statistics, in training.
  bool moves(const Term& term) const { return term.norm >= 0 && !norm(term.norm).frozen; }
  /// The norm is computed: the loss depends on it.
  bool used(const Norm& norm) const { return norm.group >= 0 && value(norm.group).used; }
};

/// What a backend says about layouts; both functions may throw Error(device), naming the node.
class LayoutPolicy {
 public:
  virtual ~LayoutPolicy() = default;
  /// `layouts` are those of the node's inputs; replaces them by the ones that the node wants to read. Where they
  /// differ, a conversion is made, one for all readers that want the same.
  virtual void reads(NodeId node, std::span<Layout> layouts) const = 0;
  /// The layout of what the input or an operation makes of sources in these layouts.
  virtual Layout makes(NodeId node, std::span<const Layout> sources) const = 0;
  /// The bias of an operation becomes a term behind it, which fuses with an activation; else the operation adds it.
  virtual bool bias_is_term() const = 0;
};

/// In another mode than training nothing depends on auxiliary losses.
Lowering lower(const Plan& plan, const LayoutPolicy& policy, Mode mode);

/// Row of the node's `index`-th parameter; -1: the node has fewer.
int parameter_row(const Plan& plan, NodeId node, std::size_t index);

}  // namespace convoy::lowering
