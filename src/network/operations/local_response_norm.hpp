// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// Across channels (Krizhevsky et al. 2012, section 3.3): y[c] = x[c] / (k + alpha / size * sum of x^2)^beta, the sum
/// over the `size` channels from c - size / 2 on, as far as they exist. PyTorch's LocalResponseNorm; the paper's alpha
/// is not divided by size.
struct LocalResponseNorm {
  int size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;

  static constexpr const char* word = "local_response_norm";
  static void fields(auto& self, const auto& visit) {
    visit("size", self.size);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
    visit("k", self.k);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<LocalResponseNorm>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
