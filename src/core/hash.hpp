// SPDX-License-Identifier: Apache-2.0
// 64-bit digests of our own state: FNV-1a for texts, a multiply-xor hash for large blocks. Not for security.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/mix_bits.hpp"

namespace convoy {

constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ mix_bits(seed);
  for (const char c : text) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return mix_bits(h);
}

/// Depends on every bit and on the order of `bytes` bytes.
inline std::uint64_t hash_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h = mix_bits(seed ^ (bytes * 0x9e3779b97f4a7c15ULL));
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, p + i, 8);
    h = (h ^ word) * 0x9fb21c651e98df25ULL;
    h ^= h >> 32;
  }
  std::uint64_t tail = 0;
  std::copy(p + i, p + bytes,
            reinterpret_cast<unsigned char*>(&tail));  // memcpy forbids a null pointer, even for no bytes
  return mix_bits(h ^ tail);
}

}  // namespace convoy
