// SPDX-License-Identifier: Apache-2.0
// What an operation is in ONNX, as data: operators of opset 13, which interchange/onnx.cpp puts into a file; and the
// forms in which interchange/onnx_network.cpp finds it in files of other programs.
#pragma once
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// What an operator reads: a value by its name, or a constant. Within one operation `x`, `x1`, `x2` ... are the node's
/// inputs, the names of its contract are its parameters, `running_mean` and `running_var` are its statistics, and any
/// other name is what an operator before this one writes.
using OnnxValue = std::variant<std::string, float>;

struct OnnxAttribute {
  std::string name;
  std::variant<Index, float, std::vector<Index>, std::string> value;
};

struct OnnxOperator {
  std::string type;  ///< `Conv`
  std::vector<OnnxValue> reads = {"x"};
  std::vector<OnnxAttribute> attributes = {};
  std::string writes = "y";  ///< `y`: the node's output
};

/// In order. Empty: y is x outside training.
using OnnxOperators = std::vector<OnnxOperator>;

/// A constant that an operator reads: its shape, and its values if they are few; -1 for those that depend on the input.
struct OnnxConstant {
  std::vector<Index> extent;
  std::vector<double> values = {};
};

/// Of a window, of groups and of padding: more than any network has.
constexpr Index most_side = 1 << 16;

/// Where a graph has one of an operation's forms. In a form, attributes and numbers must be the graph's; what follows
/// `x`, `x1` ... and what operators before it write is a constant, and those at the end may be absent.
struct OnnxSite {
  std::string node, inner;                ///< names of the form's last operator and, if it has several, of its first
  std::string type;                       ///< of the last operator
  std::size_t form = 0;                   ///< which of onnx_forms()
  std::vector<OnnxAttribute> attributes;  ///< of the last operator
  std::map<std::string, OnnxConstant> constants;  ///< by the form's names
  std::size_t outputs = 1;                        ///< of the last operator

  Index whole(const char* attribute, Index otherwise) const;
  float real(const char* attribute, float otherwise) const;
  std::vector<Index> wholes(const char* attribute, const std::vector<Index>& otherwise) const;
  std::string word(const char* attribute, const std::string& otherwise) const;
  /// Null: there is none.
  const OnnxConstant* constant(const std::string& name) const;
  /// Side `dimension` of a constant, from 1 to 2^31 - 1. Throws Error(data) if there is none.
  Index side(const std::string& constant, std::size_t dimension) const;
  /// The window's sides of a convolution or a pool: kernel, kernel_w, stride, pad, pad_w. Throws Error(data) for what
  /// Convoy does not have: dilation, or strides or padding that differ between sides.
  struct Window {
    int kernel = 1, kernel_w = 1, stride = 1, pad = 0, pad_w = 0;
  };
  Window window(const std::vector<Index>& kernel) const;
  /// Throws Error(data): `node 'N' (Conv) <what>, which Convoy doesn't have; <remedy>`.
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& remedy = "change the network, and export it again") const;
  /// Throws Error(data): the operator computes in another way than in evaluation.
  [[noreturn]] void refuse_training() const;

 private:
  const OnnxAttribute* find(const char* attribute) const;
  template <class Value>
  Value value(const char* attribute, const Value& otherwise) const;
};

/// What an operation finds at a site.
template <class Operation>
struct OnnxFound {
  Operation operation;
  bool transposed = false;  ///< the graph has the weight's sides in the other order
};

}  // namespace convoy
