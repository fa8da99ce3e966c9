// SPDX-License-Identifier: Apache-2.0
// Sums over the pixels of an image whose error doesn't grow with their number. Local to the source that includes this.
#pragma once
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {

/// Length of a chain of float additions, at most. add_terms passes the sum of two chains to a RunTotal.
inline constexpr int64_t run_pixels = 32;

namespace {

/// Sums of sixteen channels: runs of pixels are added in float, the runs in double.
struct RunTotal {
  double total[lanes] = {};

  CONVOY_INLINE void add(Vector run) {
    float values[lanes];
    store_whole(values, run);
    for (int64_t c = 0; c < lanes; ++c) total[c] += static_cast<double>(values[c]);
  }
  /// total / divisor.
  CONVOY_INLINE void store(float* to, double divisor = 1) const {
    for (int64_t c = 0; c < lanes; ++c) to[c] = static_cast<float>(total[c] / divisor);
  }
};

/// Adds term(p) for the pixels [0, pixels). Two chains of additions hide the latency; each has at most run_pixels
/// terms, so that a run is off by at most 32 u of its absolute terms (u = 2^-24).
template <class Term>
CONVOY_INLINE void add_terms(RunTotal& to, int64_t pixels, Term term) {
  for (int64_t begin = 0; begin < pixels; begin += 2 * run_pixels) {
    const int64_t end = begin + 2 * run_pixels < pixels ? begin + 2 * run_pixels : pixels;
    Vector sum[2] = {splat(0), splat(0)};
    int64_t p = begin;
    for (; p + 2 <= end; p += 2) {
      sum[0] += term(p);
      sum[1] += term(p + 1);
    }
    if (p < end) sum[0] += term(p);
    to.add(sum[0] + sum[1]);
  }
}

}  // namespace
}  // namespace convoy::cpu
