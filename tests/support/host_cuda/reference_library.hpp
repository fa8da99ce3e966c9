// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "backend/cuda/graphs/library.hpp"

namespace convoy::cuda {

/// In which precisions fused graphs exist. cuDNN has them in fp16; in fp32 the same paths can be compared tightly.
enum class Fusing : std::uint8_t { fp16, everything };

/// Answers graphs by the double reference, as a card of this architecture (80, 90) would have them.
std::unique_ptr<Library> make_reference_library(int sm, Fusing fusing);

}  // namespace convoy::cuda
