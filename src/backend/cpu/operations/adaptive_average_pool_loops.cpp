// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/adaptive_average_pool_loops.hpp"

#include "backend/cpu/vector_loops.hpp"
#include "backend/rules/adaptive_window.hpp"

namespace convoy::cpu {
namespace {

inline float pixels_of(const AdaptiveWindow& rows, const AdaptiveWindow& columns) {
  return static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class T, bool partial>
inline void adaptive_forward_unit(const AdaptivePoolArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> x(args.x, args.from, image, block), y(args.y, args.to, image, block);
  for (int64_t p = 0; p < args.y.height; ++p) {
    const AdaptiveWindow rows = adaptive_window(p, args.y.height, args.x.height);
    for (int64_t q = 0; q < args.y.width; ++q) {
      const AdaptiveWindow columns = adaptive_window(q, args.y.width, args.x.width);
      Vector sum = splat(0);
      for (int64_t i = rows.begin; i < rows.end; ++i)
        for (int64_t j = columns.begin; j < columns.end; ++j) sum += x(i * args.x.width + j, 0);
      y.put(p * args.y.width + q, 0, sum / splat(pixels_of(rows, columns)));
    }
  }
}

void adaptive_forward(const AdaptivePoolArgs& args, int64_t begin, int64_t end) {
  with_storage(args.y.storage, [&](auto storage) {
    for_units(args.y, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      for (int64_t b = 0; b < width; ++b) adaptive_forward_unit<decltype(storage), partial>(args, image, block + b);
    });
  });
}

/// Gathers, as pooling does: each pixel of x asks the windows that hold it.
template <class T, bool partial>
inline void adaptive_backward_unit(const AdaptivePoolArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> dy(args.y, args.from, image, block), dx(args.x, args.to, image, block);
  for (int64_t i = 0; i < args.x.height; ++i) {
    const AdaptiveWindow down = adaptive_window(i, args.x.height, args.y.height);
    for (int64_t j = 0; j < args.x.width; ++j) {
      const AdaptiveWindow across = adaptive_window(j, args.x.width, args.y.width);
      Vector sum = splat(0);
      for (int64_t p = down.begin; p < down.end; ++p) {
        const AdaptiveWindow rows = adaptive_window(p, args.y.height, args.x.height);
        for (int64_t q = across.begin; q < across.end; ++q) {
          const AdaptiveWindow columns = adaptive_window(q, args.y.width, args.x.width);
          sum += dy(p * args.y.width + q, 0) / splat(pixels_of(rows, columns));
        }
      }
      dx.put(i * args.x.width + j, 0, sum);
    }
  }
}

void adaptive_backward(const AdaptivePoolArgs& args, int64_t begin, int64_t end) {
  with_storage(args.x.storage, [&](auto storage) {
    for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      for (int64_t b = 0; b < width; ++b) adaptive_backward_unit<decltype(storage), partial>(args, image, block + b);
    });
  });
}

}  // namespace

template <>
const AdaptivePoolKernels& kernels_for<AdaptivePoolKernels, compiled_isa>() {
  static constexpr AdaptivePoolKernels kernels{adaptive_forward, adaptive_backward};
  return kernels;
}

}  // namespace convoy::cpu
