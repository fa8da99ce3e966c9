// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// n c h w -> n (c h w), in the order of n c h w.
struct Flatten {
  static constexpr const char* word = "flatten";
  static void fields(auto&, const auto&) {}
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Flatten>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
