// SPDX-License-Identifier: Apache-2.0
// Single elements of a tensor in either storage, for loops that need no speed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"
#include "core/wire.hpp"

namespace convoy::cpu {

inline float read_element(const std::byte* data, Storage storage, Index i) {
  if (storage == Storage::f32) return reinterpret_cast<const float*>(data)[i];
  return from_bf16(reinterpret_cast<const std::uint16_t*>(data)[i]);
}

/// Rounds to nearest even, as the vector loops do.
inline void write_element(std::byte* data, Storage storage, Index i, float value) {
  if (storage == Storage::f32) {
    reinterpret_cast<float*>(data)[i] = value;
  } else {
    reinterpret_cast<std::uint16_t*>(data)[i] = to_bf16(value);
  }
}

}  // namespace convoy::cpu
