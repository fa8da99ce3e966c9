// SPDX-License-Identifier: Apache-2.0
#include "network/operations/local_response_norm.hpp"

#include <fmt/core.h>

#include "core/errors.hpp"

namespace convoy {

Shape LocalResponseNorm::shape(const NodeInputs& inputs) const { return inputs.first(); }

// The power is taken of a number of at least k.
Contract LocalResponseNorm::contract() const { return {.possible = size > 0 && alpha >= 0 && beta > 0 && k > 0}; }

std::string LocalResponseNorm::text() const {
  return fmt::format("local response norm over {}, alpha {}, beta {}, k {}", size, alpha, beta, k);
}

OnnxOperators LocalResponseNorm::onnx(const NodeInputs& inputs) const {
  // Of an even number of channels ONNX has one more behind c, PyTorch and this have it before c.
  if (size % 2 == 0) {
    fail(Exit::usage,
         "node '{}' is a local response norm over {} channels, which ONNX centres otherwise; export safetensors or pth",
         inputs.node, size);
  }
  return {{"LRN", {"x"}, {{"size", Index{size}}, {"alpha", alpha}, {"beta", beta}, {"bias", k}}}};
}

std::vector<OnnxOperators> LocalResponseNorm::onnx_forms() { return {{{"LRN"}}}; }

std::optional<OnnxFound<LocalResponseNorm>> LocalResponseNorm::from_onnx(const OnnxSite& site) {
  const Index size = site.whole("size", 0);
  if (size < 1 || size % 2 == 0 || size > most_side)
    site.refuse(fmt::format("is a local response norm over {} channels, which ONNX centres otherwise", size));
  return {{{.size = static_cast<int>(size),
            .alpha = site.real("alpha", 1e-4F),
            .beta = site.real("beta", 0.75F),
            .k = site.real("bias", 1)}}};
}

}  // namespace convoy
