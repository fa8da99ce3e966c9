// SPDX-License-Identifier: Apache-2.0
#include "network/operations/dropout.hpp"

#include <fmt/core.h>

namespace convoy {

Shape Dropout::shape(const NodeInputs& inputs) const { return inputs.first(); }
Contract Dropout::contract() const { return {.possible = rate >= 0 && rate < 1}; }
std::string Dropout::text() const { return fmt::format("dropout {}", rate); }

OnnxOperators Dropout::onnx(const NodeInputs&) const { return {}; }

std::vector<OnnxOperators> Dropout::onnx_forms() { return {{{"Dropout", {"x", "ratio", "training_mode"}}}}; }

std::optional<OnnxFound<Dropout>> Dropout::from_onnx(const OnnxSite& site) {
  const OnnxConstant *ratio = site.constant("ratio"), *training = site.constant("training_mode");
  if (training != nullptr && (training->values.size() != 1 || training->values[0] != 0)) site.refuse_training();
  if (ratio != nullptr && ratio->values.size() == 1) return {{{.rate = static_cast<float>(ratio->values[0])}}};
  return {{{.rate = site.real("ratio", Dropout{}.rate)}}};
}

}  // namespace convoy
