// SPDX-License-Identifier: Apache-2.0
#include "network/operations/local_response_norm.hpp"

#include <fmt/core.h>

namespace convoy {

Shape LocalResponseNorm::shape(const NodeInputs& inputs) const { return inputs.first(); }

// The power is taken of a number of at least k.
Contract LocalResponseNorm::contract() const { return {.possible = size > 0 && alpha >= 0 && beta > 0 && k > 0}; }

std::string LocalResponseNorm::text() const {
  return fmt::format("local response norm over {}, alpha {}, beta {}, k {}", size, alpha, beta, k);
}

}  // namespace convoy
