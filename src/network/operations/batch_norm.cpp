// SPDX-License-Identifier: Apache-2.0
#include "network/operations/batch_norm.hpp"

#include <fmt/core.h>

#include <cmath>

namespace convoy {
namespace {

/// ONNX has the share of the old statistics. Rounded to six digits, so that there and back is the same number.
float other_share(float share) {
  constexpr double digits = 1e6;
  return static_cast<float>(std::round((1 - static_cast<double>(share)) * digits) / digits);
}

}  // namespace

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
  return {{"BatchNormalization",
           {"x", "weight", "bias", "running_mean", "running_var"},
           {{"epsilon", epsilon}, {"momentum", other_share(momentum)}}}};
}

std::vector<OnnxOperators> BatchNorm::onnx_forms() {
  return {{{"BatchNormalization", {"x", "weight", "bias", "running_mean", "running_var"}}}};
}

std::optional<OnnxFound<BatchNorm>> BatchNorm::from_onnx(const OnnxSite& site) {
  // Opset 14 says it by an attribute, those before by further outputs.
  if (site.whole("training_mode", 0) != 0 || site.outputs > 1) site.refuse_training();
  if (site.whole("spatial", 1) != 1) site.refuse("has statistics of every pixel");  // until opset 8
  return {{{.channels = site.side("weight", 0),
            .momentum = other_share(site.real("momentum", other_share(BatchNorm{}.momentum))),
            .epsilon = site.real("epsilon", BatchNorm{}.epsilon)}}};
}

}  // namespace convoy
