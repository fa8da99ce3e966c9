// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// n c (c = c*h*w of the flattened input) -> n k.
struct Linear {
  Index in = 0, out = 0;
  bool bias = true;

  static constexpr const char* word = "linear";
  static void fields(auto& self, const auto& visit) {
    visit("out", self.out);
    visit("bias", self.bias);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Linear>> from_onnx(const OnnxSite& site);
  double macs(const Shape& output) const;
};

}  // namespace convoy
