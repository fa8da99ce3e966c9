// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/pool_loops.hpp"

#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

/// Units of y for forward, of x for backward: one block at a time, both layouts.
template <class T, bool partial>
inline void pool_forward_unit(const PoolArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> x(args.x, args.from, image, block), y(args.y, args.to, image, block);
  std::uint16_t* const argmax = args.argmax ? args.argmax + image * args.y.image + block * args.y.block : nullptr;
  const int64_t h = args.x.height, w = args.x.width;
  for (int64_t p = 0; p < args.y.height; ++p) {
    for (int64_t q = 0; q < args.y.width; ++q) {
      const int64_t top = p * args.stride - args.pad, left = q * args.stride - args.pad;
      const int64_t r0 = top < 0 ? -top : 0, r1 = top + args.kernel > h ? h - top : args.kernel;
      const int64_t s0 = left < 0 ? -left : 0, s1 = left + args.kernel > w ? w - left : args.kernel;
      Vector best = splat(argmax ? -__builtin_inff() : 0);
      Integers best_place = splat_integer(static_cast<int>(r0 * args.kernel + s0));
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t s = s0; s < s1; ++s) {
          const Vector v = x((top + r) * w + left + s, 0);
          if (argmax) {
            const Integers better = greater(v, best) | not_a_number(v);
            best = select(better, v, best);
            best_place = select(better, splat_integer(static_cast<int>(r * args.kernel + s)), best_place);
          } else {
            best += v;
          }
        }
      }
      const int64_t at = p * args.y.width + q;
      if (argmax) {
        store_index<partial>(argmax + at * args.y.pixel, best_place, y.rest);
      } else {
        const int64_t counted = args.count_padding ? args.kernel * args.kernel : (r1 - r0) * (s1 - s0);
        best /= splat(static_cast<float>(counted));
      }
      y.put(at, 0, best);
    }
  }
}

void pool_forward(const PoolArgs& args, int64_t begin, int64_t end) {
  with_storage(args.y.storage, [&](auto storage) {
    for_units(args.y, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      for (int64_t b = 0; b < width; ++b) pool_forward_unit<decltype(storage), partial>(args, image, block + b);
    });
  });
}

/// Gathers: each pixel of x asks the windows that cover it, so nothing is cleared first and the order of sums is fixed.
template <class T, bool partial>
inline void pool_backward_unit(const PoolArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> dy(args.y, args.from, image, block), dx(args.x, args.to, image, block);
  const std::uint16_t* const argmax = args.argmax ? args.argmax + image * args.y.image + block * args.y.block : nullptr;
  const int64_t h = args.x.height, w = args.x.width, kernel = args.kernel, stride = args.stride;
  for (int64_t i = 0; i < h; ++i) {
    const int64_t up = i + args.pad, p0 = up < kernel ? 0 : (up - kernel) / stride + 1;
    const int64_t p1 = up / stride + 1 < args.y.height ? up / stride + 1 : args.y.height;
    for (int64_t j = 0; j < w; ++j) {
      const int64_t across = j + args.pad, q0 = across < kernel ? 0 : (across - kernel) / stride + 1;
      const int64_t q1 = across / stride + 1 < args.y.width ? across / stride + 1 : args.y.width;
      Vector sum = splat(0);
      for (int64_t p = p0; p < p1; ++p) {
        for (int64_t q = q0; q < q1; ++q) {
          const int64_t at = p * args.y.width + q;
          const Vector g = dy(at, 0);
          if (argmax) {
            const Integers best_place = load_index<partial>(argmax + at * args.y.pixel, dy.rest);
            const int64_t place = (up - p * stride) * kernel + across - q * stride;
            sum += select(equal(best_place, splat_integer(static_cast<int>(place))), g, splat(0));
          } else {
            const int64_t top = p * stride - args.pad, left = q * stride - args.pad;
            const int64_t rows = (top + kernel > h ? h : top + kernel) - (top < 0 ? 0 : top);
            const int64_t columns = (left + kernel > w ? w : left + kernel) - (left < 0 ? 0 : left);
            sum += g / splat(static_cast<float>(args.count_padding ? kernel * kernel : rows * columns));
          }
        }
      }
      dx.put(i * w + j, 0, sum);
    }
  }
}

void pool_backward(const PoolArgs& args, int64_t begin, int64_t end) {
  with_storage(args.x.storage, [&](auto storage) {
    for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      for (int64_t b = 0; b < width; ++b) pool_backward_unit<decltype(storage), partial>(args, image, block + b);
    });
  });
}

}  // namespace

template <>
const PoolKernels& kernels_for<PoolKernels, compiled_isa>() {
  static constexpr PoolKernels kernels{pool_forward, pool_backward};
  return kernels;
}

}  // namespace convoy::cpu
