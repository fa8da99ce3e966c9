// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// The sum of two inputs of one shape.
struct Add {
  static constexpr const char* word = "add";
  static void fields(auto&, const auto&) {}
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Add>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
