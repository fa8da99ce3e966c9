// SPDX-License-Identifier: Apache-2.0
// Seconds of a clock that never goes back.
#pragma once
#include <chrono>

namespace convoy {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace convoy
