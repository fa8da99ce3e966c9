// SPDX-License-Identifier: Apache-2.0
// Single elements of a tensor in either storage, for loops that need no speed.
#pragma once
#include <cstddef>
#include <cstring>

#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"

namespace convoy::cpu {

inline float read_element(const std::byte* data, Storage storage, Index i) {
  if (storage == Storage::f32) return reinterpret_cast<const float*>(data)[i];
  const std::uint32_t bits = static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(data)[i]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounds to nearest even, as the vector loops do.
inline void write_element(std::byte* data, Storage storage, Index i, float value) {
  if (storage == Storage::f32) {
    reinterpret_cast<float*>(data)[i] = value;
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = value == value ? (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 : (bits >> 16) | 0x40;
  reinterpret_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(rounded);
}

}  // namespace convoy::cpu
