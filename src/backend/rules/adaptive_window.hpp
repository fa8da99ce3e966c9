// SPDX-License-Identifier: Apache-2.0
// The windows of adaptive average pooling along one side, as PyTorch has them.
#pragma once
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

struct AdaptiveWindow {
  std::int64_t begin, end;
};

/// Of `length` positions those that the i-th of `count` results averages. The other way round, with `length` results
/// and `count` positions, it is the results that average position i.
CONVOY_FORMULA AdaptiveWindow adaptive_window(std::int64_t i, std::int64_t count, std::int64_t length) {
  return {i * length / count, ((i + 1) * length + count - 1) / count};
}

}  // namespace convoy
