// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

void add(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

void fold(const float* rows, int64_t images, int64_t padded, double* total, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) total[c] = 0;
  for (int64_t image = 0; image < images; ++image)
    for (int64_t c = begin; c < end; ++c) total[c] += static_cast<double>(rows[image * padded + c]);
}

void fold_moments(const double* means, const double* spreads, int64_t images, int64_t padded, double pixels,
                  double* mean, double* spread, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) mean[c] = spread[c] = 0;
  for (int64_t image = 0; image < images; ++image)
    for (int64_t c = begin; c < end; ++c) mean[c] += means[image * padded + c];
  for (int64_t c = begin; c < end; ++c) mean[c] /= static_cast<double>(images);
  for (int64_t image = 0; image < images; ++image)
    for (int64_t c = begin; c < end; ++c) {
      const double distance = means[image * padded + c] - mean[c];
      spread[c] += spreads[image * padded + c] + pixels * distance * distance;
    }
}

/// All bits of the exponent set: infinite or not a number. In integers, so that no flag of the compiler can drop it.
bool all_finite(const float* values, int64_t n) {
  std::uint32_t worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bits &= 0x7f800000U;
    worst = bits > worst ? bits : worst;
  }
  return worst != 0x7f800000U;
}

}  // namespace

template <>
const ArrayKernels& kernels_for<ArrayKernels, compiled_isa>() {
  static constexpr ArrayKernels kernels{add, fold, fold_moments, all_finite};
  return kernels;
}

}  // namespace convoy::cpu
