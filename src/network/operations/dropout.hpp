// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// Training: 0 for a share `rate` of the values, x / (1 - rate) for the others; which ones, backend/rules/dropout.hpp
/// says. Elsewhere y = x.
struct Dropout {
  float rate = 0.5F;

  static constexpr const char* word = "dropout";
  static void fields(auto& self, const auto& visit) { visit("rate", self.rate); }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Dropout>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
