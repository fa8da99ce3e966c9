// SPDX-License-Identifier: Apache-2.0
// What an operation is in ONNX, as data: operators of opset 13, which interchange/onnx.cpp puts into a file.
#pragma once
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
  std::variant<Index, float, std::vector<Index>> value;
};

struct OnnxOperator {
  std::string type;  ///< `Conv`
  std::vector<OnnxValue> reads = {"x"};
  std::vector<OnnxAttribute> attributes = {};
  std::string writes = "y";  ///< `y`: the node's output
};

/// In order. Empty: y is x outside training.
using OnnxOperators = std::vector<OnnxOperator>;

}  // namespace convoy
