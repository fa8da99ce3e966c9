// SPDX-License-Identifier: Apache-2.0
#include "network/operations/adaptive_average_pool.hpp"

#include <fmt/core.h>

#include "core/errors.hpp"

namespace convoy {

Shape AdaptiveAveragePool::shape(const NodeInputs& inputs) const { return {inputs.first().c, size, size}; }
Contract AdaptiveAveragePool::contract() const { return {.possible = size > 0}; }
std::string AdaptiveAveragePool::text() const { return fmt::format("adaptive average pool to {}x{}", size, size); }

OnnxOperators AdaptiveAveragePool::onnx(const NodeInputs& inputs) const {
  const Shape& x = inputs.first();
  if (x.h % size != 0 || x.w % size != 0)
    fail(Exit::usage,
         "node '{}' averages {} x {} pixels to {} x {}, and ONNX has this operation only if the windows are equal; "
         "export safetensors, or for images of another size",
         inputs.node, x.h, x.w, size, size);
  const std::vector<Index> window{x.h / size, x.w / size};
  return {{"AveragePool", {"x"}, {{"kernel_shape", window}, {"strides", window}}}};
}

// A graph has it as the AveragePool that it is for its images.
std::vector<OnnxOperators> AdaptiveAveragePool::onnx_forms() { return {}; }
std::optional<OnnxFound<AdaptiveAveragePool>> AdaptiveAveragePool::from_onnx(const OnnxSite&) { return {}; }

}  // namespace convoy
