// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace convoy {

/// Which weights of a checkpoint. usual: the moving average if there is one, as in validation.
enum class WeightChoice : std::uint8_t { usual, average, trained };

}  // namespace convoy
