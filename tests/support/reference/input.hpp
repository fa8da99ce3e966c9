// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "backend/backend.hpp"
#include "support/reference/tensor.hpp"

namespace convoy::reference {

/// Network input of a batch, pixel by pixel as SampleSpec and InputSpec define it.
Tensor make_input(const InputSpec& spec, std::span<const SampleSpec> samples, const std::uint8_t* images, Index height,
                  Index width);

}  // namespace convoy::reference
