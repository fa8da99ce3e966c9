// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// y[k,p,q] = sum w[k,c,r,s] x[c, p*stride - pad + r, q*stride - pad_s + s] (+ bias[k]).
struct Convolution {
  Index in = 0, out = 0;
  int kernel = 3, stride = 1, pad = 1, groups = 1;
  bool bias = false;
  int kernel_w = 0, pad_w = 0;  ///< 0: the kernel is a square, and padded alike on all sides

  int s() const { return kernel_w > 0 ? kernel_w : kernel; }
  int pad_s() const { return kernel_w > 0 ? pad_w : pad; }

  static constexpr const char* word = "convolution";
  static void fields(auto& self, const auto& visit) {
    visit("out", self.out);
    visit("kernel", self.kernel);
    visit("stride", self.stride);
    visit("pad", self.pad);
    visit("groups", self.groups);
    visit("bias", self.bias);
    visit("kernel_w", self.kernel_w);
    visit("pad_w", self.pad_w);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Convolution>> from_onnx(const OnnxSite& site);
  double macs(const Shape& output) const;
};

}  // namespace convoy
