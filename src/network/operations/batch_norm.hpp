// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// y = scale * (x - mean) / sqrt(var + epsilon) + shift. Training: biased batch variance; running statistics take
/// (1 - momentum) * old + momentum * new, the variance unbiased. Parameters: weight (scale), bias (shift).
struct BatchNorm {
  Index channels = 0;
  float momentum = 0.1F, epsilon = 1e-5F;

  static constexpr const char* word = "batch_norm";
  static void fields(auto& self, const auto& visit) {
    visit("momentum", self.momentum);
    visit("epsilon", self.epsilon);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<BatchNorm>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
