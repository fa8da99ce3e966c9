// SPDX-License-Identifier: Apache-2.0
#include "network/operations/batch_norm.hpp"

#include <fmt/core.h>

namespace convoy {

Shape BatchNorm::shape(const NodeInputs& inputs) const {
  inputs.require_channels(channels);
  return inputs.first();
}

Contract BatchNorm::contract() const {
  return {.parameters = {{"weight", Kind::norm_scale, {channels}}, {"bias", Kind::norm_shift, {channels}}},
          .possible = channels > 0 && momentum >= 0 && momentum <= 1 && epsilon > 0};
}

std::string BatchNorm::text() const {
  return fmt::format("batch norm {}, momentum {}, epsilon {}", channels, momentum, epsilon);
}

OnnxOperators BatchNorm::onnx(const NodeInputs&) const {
  return {{"BatchNormalization", {"x", "weight", "bias", "running_mean", "running_var"}, {{"epsilon", epsilon}}}};
}

}  // namespace convoy
