// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: a draw is a pure function of (seed, what for, counter), so threads, ranks and restarts
// can't change it. Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "core/hash.hpp"
#include "core/types.hpp"

namespace convoy {

/// What a stream of draws is for; different purposes never share numbers.
enum class Stream : std::uint32_t {
  shuffle = 1,
  resample,
  augmentation,
  initialisation,
  synthetic,
  dropout,
  region,
  colour,
  geometry,
  policy,
  erasing,
  mixing,
  buffer,
  basis
};

/// Draws of one (seed, stream, a, b), for instance (seed, augmentation, epoch, position).
class Random {
 public:
  Random(std::uint64_t seed, Stream stream, std::uint64_t a = 0, std::uint64_t b = 0)
      : key_{static_cast<std::uint32_t>(mixed(seed, stream)), static_cast<std::uint32_t>(mixed(seed, stream) >> 32)},
        counter_{static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32), static_cast<std::uint32_t>(a), 0} {
    key_[1] ^= static_cast<std::uint32_t>(mix_bits(a >> 32));
  }

  std::uint32_t bits() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[3];
      used_ = 0;
    }
    return block_[used_++];
  }
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24F; }
  /// Uniform in [0, n), n > 0, without modulo bias beyond 2^-32 (Lemire's multiply-shift).
  Index below(Index n) {
    const std::uint64_t wide = (static_cast<std::uint64_t>(bits()) << 32) | bits();
    __extension__ using Wide = unsigned __int128;
    return static_cast<Index>((static_cast<Wide>(wide) * static_cast<std::uint64_t>(n)) >> 64);
  }
  /// Standard normal (Box-Muller, in double).
  double normal() {
    const double u = (static_cast<double>(bits()) + 0.5) * 0x1p-32, v = static_cast<double>(bits()) * 0x1p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  using Block = std::array<std::uint32_t, 4>;
  static std::uint64_t mixed(std::uint64_t seed, Stream stream) {
    return mix_bits(seed ^ mix_bits(static_cast<std::uint64_t>(stream) * 0x9e3779b97f4a7c15ULL));
  }
  static Block philox(Block c, std::array<std::uint32_t, 2> k) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p = 0xD2511F53ULL * c[0], q = 0xCD9E8D57ULL * c[2];
      c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
           static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
      k[0] += 0x9E3779B9U;
      k[1] += 0xBB67AE85U;
    }
    return c;
  }

  std::array<std::uint32_t, 2> key_;
  Block counter_, block_{};
  unsigned used_ = 4;
};

}  // namespace convoy
