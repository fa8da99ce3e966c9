// SPDX-License-Identifier: Apache-2.0
// What an operation is to the network: a struct of its attributes with these members, and a line in operations.hpp.
//   Shape shape(const NodeInputs&) const     of its output, for one sample; throws Error(usage) naming the node
//   Contract contract() const                what it reads and owns
//   std::string text() const                 the operation with all its attributes, on one line. The plan's digest is
//                                            made of these texts: every attribute that changes the function appears
//   OnnxOperators onnx(const NodeInputs&) const
//                                            the same function in ONNX; throws Error(usage) where ONNX has none
//   static std::vector<OnnxOperators> onnx_forms()
//                                            how graphs of this and of other programs write it
//   static std::optional<OnnxFound<Operation>> from_onnx(const OnnxSite&)
//                                            the operation at a site with one of the forms; throws Error(data) naming
//                                            node and remedy if Convoy can't compute it; nothing: it is another one.
//                                            Of all operations but input and loss
//   double macs(const Shape& output) const   multiply-adds of one sample; left out where there are none
//   word, fields(self, visit)                its name in a network's file, and the attributes that stand there:
//   visit(name,
//                                            member) of each. What follows from the inputs (`in`, `channels`) is left
//                                            out. An operation without is none that a file can name
#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "network/operations/onnx_operator.hpp"
#include "network/parameter_spec.hpp"

namespace convoy {

/// Shape of a node's output for one sample: c h w (h = w = 1 after Flatten, Linear, global pooling).
struct Shape {
  Index c = 0, h = 1, w = 1;
  Index count() const { return c * h * w; }
  bool operator==(const Shape&) const = default;
};

/// A parameter's place in an operation: its name there (`weight`), kind and shape.
struct ParameterSlot {
  std::string name;
  Kind kind;
  std::vector<Index> shape;
};

struct Contract {
  std::size_t inputs = 1;
  bool more_inputs = false;  ///< `inputs` or more
  std::vector<ParameterSlot> parameters;
  bool possible = true;  ///< the attributes make sense; where they don't, the rest isn't looked at
};

/// A window's side, in one direction.
struct Slide {
  int kernel = 1, stride = 1, pad = 0;
};

/// What an operation knows when it infers its shape.
struct NodeInputs {
  const std::string& node;  ///< its name, for messages
  std::vector<Shape> shapes;
  Shape image;  ///< h w of the network's input
  Index classes = 0;

  const Shape& first() const { return shapes.at(0); }
  void require_channels(Index wanted) const;
  /// Positions of a window on the first input. `ceil`: as PyTorch's ceil_mode, a last window that juts out counts if it
  /// begins before the padding at the end.
  Shape slide(Index channels, const Slide& down, const Slide& across, bool ceil = false) const;
};

template <class T>
concept Operation = requires(const T& operation, const NodeInputs& inputs) {
  { operation.shape(inputs) } -> std::same_as<Shape>;
  { operation.contract() } -> std::same_as<Contract>;
  { operation.text() } -> std::same_as<std::string>;
  { operation.onnx(inputs) } -> std::same_as<OnnxOperators>;
};

}  // namespace convoy
