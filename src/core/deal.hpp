// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "core/types.hpp"

namespace convoy {

/// The part-th of `parts` contiguous runs of 0 .. total-1; sizes differ by at most one, the longer ones come first.
constexpr Range deal(Index total, Index parts, Index part) {
  const Index share = total / parts, rest = total % parts;
  return {part * share + std::min(part, rest), share + (part < rest ? 1 : 0)};
}

}  // namespace convoy
