// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// n c h w -> n c size size: means over windows that share out the pixels and overlap if they must. PyTorch's
/// adaptive_avg_pool2d.
struct AdaptiveAveragePool {
  int size = 1;

  static constexpr const char* word = "adaptive_average_pool";
  static void fields(auto& self, const auto& visit) { visit("size", self.size); }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<AdaptiveAveragePool>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
