// SPDX-License-Identifier: Apache-2.0
// What lies around an image that is cropped past its rim. C++17, since CUDA kernels include it too.
#pragma once
#include <cstdint>

#include "core/portable.hpp"

namespace convoy {

/// constant: one value. reflect: the image again, reflected at the middle of its outermost pixels. The words are those
/// of numpy.pad and torchvision.
enum class Padding : std::uint8_t { constant, reflect };

/// The pixel that position `at` of a reflected line of `size` pixels shows. Past a line's length it is reflected again.
template <class Integer>
CONVOY_HD constexpr Integer reflected(Integer at, Integer size) {
  if (size == 1) return 0;
  while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
  return at;
}

}  // namespace convoy
