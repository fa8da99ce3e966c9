// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// Inputs of one height and width, one after the other along the channels: n c1 h w, n c2 h w, ... -> n (c1 + c2 +
/// ...) h w.
struct Concatenation {
  static constexpr const char* word = "concatenation";
  static void fields(auto&, const auto&) {}
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Concatenation>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
