// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/conversion_loops.hpp"

#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

template <class To, class From, int B, bool partial>
inline void convert_unit(const ConvertArgs& args, int64_t image, int64_t block) {
  const Lines<From, partial> from(args.layout, args.from, image, block);
  const Lines<To, partial> to(args.layout, args.to, image, block);
  for (int64_t p = 0; p < args.layout.pixels(); ++p) {
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) to.put(p, b, from(p, b));
  }
}

void convert(const ConvertArgs& args, int64_t begin, int64_t end) {
  for_units(args.layout, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
    if (args.layout.storage == Storage::f32)
      convert_unit<Bf16, float, width, partial>(args, image, block);
    else
      convert_unit<float, Bf16, width, partial>(args, image, block);
  });
}

}  // namespace

template <>
const ConversionKernels& kernels_for<ConversionKernels, compiled_isa>() {
  static constexpr ConversionKernels kernels{convert};
  return kernels;
}

}  // namespace convoy::cpu
