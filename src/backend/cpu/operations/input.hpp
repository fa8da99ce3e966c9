// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "backend/backend.hpp"

namespace convoy::cpu {

/// Turns stored images into network input x (n c h w, fp32; h w = height x width), sample i into row i: crop window,
/// flip, normalisation, erased rectangle, mix-up with the partner's image made the same way (see SampleSpec and
/// InputSpec). `images`: n h w c of InputSpec's size; SampleSpec::sample is the row. Allocates nothing.
void make_input(const InputSpec& spec, std::span<const SampleSpec> samples, const std::uint8_t* images, Index height,
                Index width, float* x);

}  // namespace convoy::cpu
