// SPDX-License-Identifier: Apache-2.0
// The vector loops of the operations. A source named *_loops.cpp is compiled once for each instruction set, and each
// time it defines kernels_for() for a struct of function pointers that its header declares. Plain types only, since
// these headers are compiled for several instruction sets.
#pragma once
#include <cstdint>

#include "backend/cpu/tensor_layout.hpp"

namespace convoy::cpu {

enum class Isa : std::uint8_t { avx2, avx512, avx512_bf16 };

template <class Kernels, Isa isa>
const Kernels& kernels_for();

template <class Kernels>
const Kernels& kernels_for(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return kernels_for<Kernels, Isa::avx2>();
    case Isa::avx512:
      return kernels_for<Kernels, Isa::avx512>();
    case Isa::avx512_bf16:
      return kernels_for<Kernels, Isa::avx512_bf16>();
  }
  __builtin_unreachable();
}

/// Loops over plain arrays.
struct ArrayKernels {
  /// to += from.
  void (*add)(float* to, const float* from, std::int64_t n);
  /// total[c] = sum over images of rows[image][c], in image order, for the channels [begin, end).
  void (*fold)(const float* rows, std::int64_t images, std::int64_t padded, double* total, std::int64_t begin,
               std::int64_t end);
  /// Mean and spread (sum of squared distances from the mean) of `pixels` values in each image, rows
  /// [image][padded], to those of all values, in image order, for the channels [begin, end).
  void (*fold_moments)(const double* means, const double* spreads, std::int64_t images, std::int64_t padded,
                       double pixels, double* mean, double* spread, std::int64_t begin, std::int64_t end);
  bool (*all_finite)(const float* values, std::int64_t n);
};

}  // namespace convoy::cpu
