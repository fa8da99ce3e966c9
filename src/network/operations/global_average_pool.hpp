// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// n c h w -> n c 1 1.
struct GlobalAveragePool {
  static constexpr const char* word = "global_average_pool";
  static void fields(auto&, const auto&) {}
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<GlobalAveragePool>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
