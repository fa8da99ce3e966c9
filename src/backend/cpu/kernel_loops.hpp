// SPDX-License-Identifier: Apache-2.0
// The source of every kernel table: GCC vectors of 16 floats, which the compiler splits where registers are narrower.
// Included once by each kernels_*.cpp, which is compiled for its instruction set. Everything is local to that file: an
// inline function shared between files could be linked in the version of the wrong instruction set.
#pragma once
#include <type_traits>

#include "backend/cpu/kernel_vectors.hpp"
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/local_response_loops.hpp"

namespace convoy::cpu {
namespace {
// NOLINTBEGIN(misc-definitions-in-headers): every instruction set's source includes this once, into its own namespace

using std::int64_t;

template <bool value>
using Flag = std::integral_constant<bool, value>;
template <int value>
using Number = std::integral_constant<int, value>;

/// Calls visit(image, first block, blocks at once, partial?) for the units [begin, end).
template <class Visit>
inline void for_units(const Field& field, int64_t begin, int64_t end, Visit visit) {
  const int64_t per_image = units_per_image(field), width = unit_blocks(field), blocks = field.blocks();
  const int64_t full = field.blocked() ? blocks : field.channels / lanes;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / per_image;
    int64_t block = unit % per_image * width;
    const int64_t stop = block + width < blocks ? block + width : blocks;
    if (stop - block == 4 && stop <= full) {
      visit(image, block, Number<4>{}, Flag<false>{});
      continue;
    }
    for (; block < stop; ++block) {
      if (block < full)
        visit(image, block, Number<1>{}, Flag<false>{});
      else
        visit(image, block, Number<1>{}, Flag<true>{});
    }
  }
}

/// Calls visit(float or Bf16) for the field's storage.
template <class Visit>
inline void with_storage(Storage storage, Visit visit) {
  if (storage == Storage::f32)
    visit(float{});
  else
    visit(Bf16{});
}

template <class Visit>
inline void with_flag(bool value, Visit visit) {
  if (value)
    visit(Flag<true>{});
  else
    visit(Flag<false>{});
}

/// A tensor seen from one image and channel block.
template <class T, bool partial>
struct Lines {
  T* base;
  int64_t pixel;
  int rest;  ///< channels of a partial block

  Lines(const Field& field, const void* data, int64_t image, int64_t block)
      : base(static_cast<T*>(const_cast<void*>(data)) + (data ? image * field.image + block * field.block : 0)),
        pixel(field.pixel),
        rest(static_cast<int>(field.channels - block * lanes)) {}
  Vector operator()(int64_t p, int64_t b) const { return load<partial>(base + p * pixel + b * lanes, rest); }
  void put(int64_t p, int64_t b, Vector v) const { store<partial>(base + p * pixel + b * lanes, v, rest); }
};

inline Vector apply_curve(CurveShape curve, Vector v, Vector slope) {
  if (curve == CurveShape::rectifier) return select(greater(splat(0), v), slope * v, v);  // keeps NaN
  if (curve == CurveShape::tanh) return tanh_of(v);
  return v;
}

inline Vector apply_derivative(CurveShape curve, Vector y, Vector g, Vector slope) {
  if (curve == CurveShape::rectifier) return select(greater(y, splat(0)), g, slope * g);
  if (curve == CurveShape::tanh) return g * (splat(1) - y * y);
  return g;
}

template <class T, int B, bool partial, bool two>
inline void evaluate_unit(const EvaluateArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> x(args.field, args.first, image, block), y(args.field, args.second, image, block),
      out(args.field, args.out, image, block);
  Vector s[B], h[B], s1[B];
  for (int b = 0; b < B; ++b) {
    const int64_t c = (block + b) * lanes;
    s[b] = args.scale0 ? load<false>(args.scale0 + c, 16) : splat(1);
    h[b] = args.scale0 ? load<false>(args.shift0 + c, 16) : splat(0);
    s1[b] = two && args.scale1 ? load<false>(args.scale1 + c, 16) : splat(1);
    if (two && args.scale1) h[b] += load<false>(args.shift1 + c, 16);
  }
  const Vector slope = splat(args.slope);
  const CurveShape curve = args.curve;
  const int64_t pixels = args.field.pixels();
  for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      Vector v = x(p, b) * s[b] + h[b];
      if constexpr (two) v += y(p, b) * s1[b];
      out.put(p, b, apply_curve(curve, v, slope));
    }
  }
}

void evaluate(const EvaluateArgs& args, int64_t begin, int64_t end) {
  with_storage(args.field.storage, [&](auto storage) {
    with_flag(args.second != nullptr, [&](auto two) {
      for_units(args.field, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
        evaluate_unit<decltype(storage), width, partial, two>(args, image, block);
      });
    });
  });
}

// Four chains of additions hide the latency: four channel blocks, or four pixels of one block.
template <class T, int B, bool partial>
inline void statistics_unit(const StatisticsArgs& args, int64_t image, int64_t block) {
  constexpr int unroll = 4 / B;
  const Lines<T, partial> x(args.field, args.value, image, block);
  Vector sum[4], square[4];
  for (int i = 0; i < 4; ++i) sum[i] = square[i] = splat(0);
  const int64_t pixels = args.field.pixels(), even = pixels / unroll * unroll;
  for (int64_t p = 0; p < even; p += unroll) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector v = x(p + i / B, i % B);
      sum[i] += v;
      square[i] += v * v;
    }
  }
  for (int64_t p = even; p < pixels; ++p) {
    const Vector v = x(p, 0);  // only where B = 1
    sum[0] += v;
    square[0] += v * v;
  }
  const int64_t at = image * args.field.padded_channels() + block * lanes;
  for (int b = 0; b < B; ++b) {
    if constexpr (B == 1) {
      sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
      square[0] = (square[0] + square[1]) + (square[2] + square[3]);
    }
    store<false>(args.sums + at + b * lanes, sum[b], 16);
    store<false>(args.squares + at + b * lanes, square[b], 16);
  }
}

void statistics(const StatisticsArgs& args, int64_t begin, int64_t end) {
  with_storage(args.field.storage, [&](auto storage) {
    for_units(args.field, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
      statistics_unit<decltype(storage), width, partial>(args, image, block);
    });
  });
}

template <class T, int B, bool partial, bool affine, bool two, int norms>
inline void collect_unit(const CollectArgs& args, int64_t image, int64_t block) {
  using Tensor = Lines<T, partial>;
  const Tensor g(args.field, args.gradient, image, block), self(args.field, args.self, image, block),
      g2(args.field, args.second, image, block), act(args.field, args.output, image, block),
      out(args.field, args.out, image, block), y0(args.field, args.norm[0].value, image, block),
      y1(args.field, args.norm[1].value, image, block);
  Vector a[B], w[B], d[B], mean0[B], mean1[B], sum[B], product0[B], product1[B];
  for (int b = 0; b < B; ++b) {
    const int64_t c = (block + b) * lanes;
    if constexpr (affine) {
      a[b] = load<false>(args.a + c, 16);
      w[b] = load<false>(args.b + c, 16);
      d[b] = load<false>(args.d + c, 16);
    }
    if constexpr (norms > 0) mean0[b] = load<false>(args.norm[0].mean + c, 16);
    if constexpr (norms > 1) mean1[b] = load<false>(args.norm[1].mean + c, 16);
    sum[b] = product0[b] = product1[b] = splat(0);
  }
  const Vector slope = splat(args.slope);
  const CurveShape curve = args.output ? args.curve : CurveShape::identity;
  const int64_t pixels = args.field.pixels();
  for (int64_t p = 0; p < pixels; ++p) {
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      Vector v = g(p, b);
      if constexpr (affine) v = v * a[b] + (self(p, b) * w[b] + d[b]);
      if constexpr (two) v += g2(p, b);
      if (curve != CurveShape::identity) v = apply_derivative(curve, act(p, b), v, slope);
      out.put(p, b, v);
      if constexpr (norms > 0) {
        sum[b] += v;
        product0[b] += v * (y0(p, b) - mean0[b]);
      }
      if constexpr (norms > 1) product1[b] += v * (y1(p, b) - mean1[b]);
    }
  }
  const int64_t at = image * args.field.padded_channels() + block * lanes;
  for (int b = 0; b < B; ++b) {
    if constexpr (norms > 0) {
      store<false>(args.sums + at + b * lanes, sum[b], 16);
      store<false>(args.norm[0].products + at + b * lanes, product0[b], 16);
    }
    if constexpr (norms > 1) store<false>(args.norm[1].products + at + b * lanes, product1[b], 16);
  }
}

template <class T, bool affine, bool two, int norms>
inline void collect_units(const CollectArgs& args, int64_t begin, int64_t end) {
  for_units(args.field, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
    collect_unit<T, width, partial, affine, two, norms>(args, image, block);
  });
}

void collect(const CollectArgs& args, int64_t begin, int64_t end) {
  with_storage(args.field.storage, [&](auto storage) {
    using T = decltype(storage);
    with_flag(args.a != nullptr, [&](auto affine) {
      with_flag(args.second != nullptr, [&](auto two) {
        if (args.norms == 0) collect_units<T, affine, two, 0>(args, begin, end);
        if (args.norms == 1) collect_units<T, affine, two, 1>(args, begin, end);
        if (args.norms == 2) collect_units<T, affine, two, 2>(args, begin, end);
      });
    });
  });
}

/// Units of y for forward, of x for backward: one block at a time, both layouts.
template <class T, bool partial>
inline void pool_forward_unit(const PoolArgs& args, int64_t image, int64_t block) {
  const Lines<T, partial> x(args.x, args.from, image, block), y(args.y, args.to, image, block);
  std::uint16_t* const index = args.index ? args.index + image * args.y.image + block * args.y.block : nullptr;
  const int64_t h = args.x.height, w = args.x.width;
  for (int64_t p = 0; p < args.y.height; ++p) {
    for (int64_t q = 0; q < args.y.width; ++q) {
      const int64_t top = p * args.stride - args.pad, left = q * args.stride - args.pad;
      const int64_t r0 = top < 0 ? -top : 0, r1 = top + args.kernel > h ? h - top : args.kernel;
      const int64_t s0 = left < 0 ? -left : 0, s1 = left + args.kernel > w ? w - left : args.kernel;
      Vector best = splat(index ? -__builtin_inff() : 0);
      Integers winner = splat_integer(static_cast<int>(r0 * args.kernel + s0));
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t s = s0; s < s1; ++s) {
          const Vector v = x((top + r) * w + left + s, 0);
          if (index) {
            const Integers better = greater(v, best) | not_a_number(v);
            best = select(better, v, best);
            winner = select(better, splat_integer(static_cast<int>(r * args.kernel + s)), winner);
          } else {
            best += v;
          }
        }
      }
      const int64_t at = p * args.y.width + q;
      if (index) {
        store_index<partial>(index + at * args.y.pixel, winner, y.rest);
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
  const std::uint16_t* const index = args.index ? args.index + image * args.y.image + block * args.y.block : nullptr;
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
          if (index) {
            const Integers winner = load_index<partial>(index + at * args.y.pixel, dy.rest);
            const int64_t place = (up - p * stride) * kernel + across - q * stride;
            sum += select(equal(winner, splat_integer(static_cast<int>(place))), g, splat(0));
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

/// `rows`: [image][channels] floats, nothing stored past the last channel.
inline void global_row(const GlobalPoolArgs& args, int64_t image, int64_t block, bool forward) {
  const int64_t pixels = args.x.pixels(), rest = args.x.channels - block * lanes;
  const int count = static_cast<int>(rest < lanes ? rest : lanes);
  with_storage(args.x.storage, [&](auto storage) {
    with_flag(count < lanes && !args.x.blocked(), [&](auto partial) {
      const Lines<decltype(storage), partial> x(args.x, forward ? args.from : args.to, image, block);
      float* const row = static_cast<float*>(const_cast<void*>(forward ? args.to : args.from)) +
                         image * args.x.channels + block * lanes;
      if (forward) {
        Vector sum[2] = {splat(0), splat(0)};
        for (int64_t p = 0; p < pixels; ++p) sum[p & 1] += x(p, 0);
        store<true>(row, (sum[0] + sum[1]) / splat(static_cast<float>(pixels)), count);
      } else {
        const Vector share = load<true>(row, count) / splat(static_cast<float>(pixels));
        for (int64_t p = 0; p < pixels; ++p) x.put(p, 0, share);
      }
    });
  });
}

void global_forward(const GlobalPoolArgs& args, int64_t begin, int64_t end) {
  for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto) {
    for (int64_t b = 0; b < width; ++b) global_row(args, image, block + b, true);
  });
}

void global_backward(const GlobalPoolArgs& args, int64_t begin, int64_t end) {
  for_units(args.x, begin, end, [&](int64_t image, int64_t block, auto width, auto) {
    for (int64_t b = 0; b < width; ++b) global_row(args, image, block + b, false);
  });
}

template <class To, class From, int B, bool partial>
inline void convert_unit(const ConvertArgs& args, int64_t image, int64_t block) {
  const Lines<From, partial> from(args.field, args.from, image, block);
  const Lines<To, partial> to(args.field, args.to, image, block);
  for (int64_t p = 0; p < args.field.pixels(); ++p) {
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) to.put(p, b, from(p, b));
  }
}

void convert(const ConvertArgs& args, int64_t begin, int64_t end) {
  for_units(args.field, begin, end, [&](int64_t image, int64_t block, auto width, auto partial) {
    if (args.field.storage == Storage::f32)
      convert_unit<Bf16, float, width, partial>(args, image, block);
    else
      convert_unit<float, Bf16, width, partial>(args, image, block);
  });
}

void add(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

void fold(const float* rows, int64_t images, int64_t padded, double* total, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) total[c] = 0;
  for (int64_t image = 0; image < images; ++image)
    for (int64_t c = begin; c < end; ++c) total[c] += static_cast<double>(rows[image * padded + c]);
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

constexpr KernelTable make_kernel_table(const char* name, bool wide) {
  return {name,           wide,           evaluate,        statistics, collect, pool_forward, pool_backward,
          local_response, global_forward, global_backward, convert,    add,     fold,         all_finite};
}

// NOLINTEND(misc-definitions-in-headers)
}  // namespace
}  // namespace convoy::cpu
