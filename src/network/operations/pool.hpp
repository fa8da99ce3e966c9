// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// Average counts padding where count_padding (PyTorch's default). Ties of max pooling go to the first element. `ceil`:
/// of max pooling, a last window that juts out of the image counts too (PyTorch's ceil_mode).
struct Pool {
  enum class Mode : std::uint8_t { max, average };
  Mode mode = Mode::max;
  int kernel = 2, stride = 2, pad = 0;
  bool count_padding = true;
  bool ceil = false;

  static constexpr const char* word = "pool";
  static void fields(auto& self, const auto& visit) {
    visit("mode", self.mode);
    visit("kernel", self.kernel);
    visit("stride", self.stride);
    visit("pad", self.pad);
    visit("count_padding", self.count_padding);
    visit("ceil", self.ceil);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<Pool>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
