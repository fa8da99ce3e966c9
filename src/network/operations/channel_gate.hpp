// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/activation_kind.hpp"
#include "network/operations/operation.hpp"

namespace convoy {

/// Squeeze and excitation's last step (Hu et al. 2018, arXiv 1709.01507): y[c,h,w] = x[c,h,w] * gate(s[c]). Inputs: x,
/// and s of 1 x 1 pixels.
struct ChannelGate {
  GateKind gate = GateKind::sigmoid;

  static constexpr const char* word = "channel_gate";
  static void fields(auto& self, const auto& visit) { visit("gate", self.gate); }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  static std::vector<OnnxOperators> onnx_forms();
  static std::optional<OnnxFound<ChannelGate>> from_onnx(const OnnxSite& site);
};

}  // namespace convoy
