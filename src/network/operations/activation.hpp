// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/activation_kind.hpp"
#include "network/operations/operation.hpp"

namespace convoy {

struct Activation {
  ActivationKind kind = ActivationKind::relu;
  float slope = 0;  ///< leaky_relu: y = x > 0 ? x : slope * x; scale: y = slope * x

  static constexpr const char* word = "activation";
  static void fields(auto& self, const auto& visit) {
    visit("kind", self.kind);
    visit("slope", self.slope);
  }
  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
};

/// The names that users write for the activation of a network, in the order of the kinds: `relu`, `leaky_relu`, ...
std::vector<std::string> activation_names();
/// Throws Error(usage) for a name that isn't among them.
ActivationKind activation_kind(const std::string& name);
/// In a network's file: also `scale`.
ActivationKind activation_of_word(const std::string& word);
std::string activation_word(ActivationKind kind);

}  // namespace convoy
