// SPDX-License-Identifier: Apache-2.0
// A unit is one image times one row of pixels, all channels.
#include "backend/cpu/operations/local_response_norm_loops.hpp"

#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

/// Sixteen channels of one pixel; what isn't there reads as 0.
template <class T>
CONVOY_INLINE Vector channels_at(const TensorLayout& layout, const T* pixel, std::int64_t block) {
  if (block < 0 || block >= layout.blocks()) return splat(0);
  const std::int64_t rest = layout.channels - block * lanes;
  if (layout.blocked() || rest >= lanes) return load<false>(pixel + block * layout.block, lanes);
  return load<true>(pixel + block * layout.block, static_cast<int>(rest));
}

template <class T>
CONVOY_INLINE void put_channels(const TensorLayout& layout, T* pixel, std::int64_t block, Vector v) {
  const std::int64_t rest = layout.channels - block * lanes;
  if (layout.blocked() || rest >= lanes)
    store<false>(pixel + block * layout.block, v, lanes);
  else
    store<true>(pixel + block * layout.block, v, static_cast<int>(rest));
}

/// Sums over the channels c - before ... c + after of the middle one of three neighbouring blocks.
CONVOY_INLINE Vector window_sum(Vector left, Vector middle, Vector right, std::int64_t before, std::int64_t after) {
  float line[3 * lanes];
  store_whole(line, left);
  store_whole(line + lanes, middle);
  store_whole(line + 2 * lanes, right);
  Vector sum = load_whole(line + lanes - before);
  for (std::int64_t d = 1 - before; d <= after; ++d) sum += load_whole(line + lanes + d);
  return sum;
}

/// s^-beta, element by element; 3/4 as roots, which the compiler makes vectors of.
CONVOY_INLINE Vector inverse_power(Vector s, float beta) {
  float values[lanes];
  store_whole(values, s);
  if (beta == 0.75F) {
    for (float& value : values) value = 1 / (__builtin_sqrtf(value) * __builtin_sqrtf(__builtin_sqrtf(value)));
  } else {
    for (float& value : values) value = powf(value, -beta);
  }
  return load_whole(values);
}

CONVOY_INLINE Vector response_base(const LocalResponseRule& rule, Vector left, Vector x, Vector right) {
  const Vector sum = window_sum(left * left, x * x, right * right, rule.before(), rule.after());
  return splat(rule.k) + splat(rule.share) * sum;
}

template <class T>
inline void response_forward_pixel(const LocalResponseArgs& args, const T* x, T* y) {
  const TensorLayout& f = args.layout;
  Vector left = splat(0), middle = channels_at(f, x, 0);
  for (std::int64_t block = 0; block < f.blocks(); ++block) {
    const Vector right = channels_at(f, x, block + 1);
    put_channels(f, y, block, middle * inverse_power(response_base(args.rule, left, middle, right), args.rule.beta));
    left = middle;
    middle = right;
  }
}

/// t of a block needs x of its neighbours, dx of a block needs t of its neighbours: dx follows one block behind.
template <class T>
inline void response_backward_pixel(const LocalResponseArgs& args, const T* x, const T* dy, T* dx) {
  const TensorLayout& f = args.layout;
  const Vector coupling = splat(args.rule.coupling());
  Vector left = splat(0), middle = channels_at(f, x, 0);
  Vector t_before = splat(0), t_here = splat(0), x_here = splat(0), direct = splat(0);
  for (std::int64_t block = 0; block <= f.blocks(); ++block) {
    const Vector right = channels_at(f, x, block + 1);
    const Vector base = response_base(args.rule, left, middle, right);
    const Vector through = channels_at(f, dy, block) * inverse_power(base, args.rule.beta);
    const Vector t = through * middle / base;
    if (block > 0) {
      const Vector sum = window_sum(t_before, t_here, t, args.rule.after(), args.rule.before());
      put_channels(f, dx, block - 1, direct - coupling * x_here * sum);
    }
    t_before = t_here;
    t_here = t;
    x_here = middle;
    direct = through;
    left = middle;
    middle = right;
  }
}

template <class Visit>
inline void for_response_pixels(const LocalResponseArgs& args, std::int64_t begin, std::int64_t end, Visit visit) {
  const TensorLayout& f = args.layout;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t row = unit / f.height * f.image + unit % f.height * f.width * f.pixel;
    for (std::int64_t w = 0; w < f.width; ++w) visit(row + w * f.pixel);
  }
}

template <class T>
inline void response_rows(const LocalResponseArgs& args, std::int64_t begin, std::int64_t end) {
  const auto* x = static_cast<const T*>(args.x);
  const auto* dy = static_cast<const T*>(args.dy);
  auto* to = static_cast<T*>(args.to);
  for_response_pixels(args, begin, end, [&](std::int64_t at) {
    if (dy)
      response_backward_pixel(args, x + at, dy + at, to + at);
    else
      response_forward_pixel(args, x + at, to + at);
  });
}

void local_response(const LocalResponseArgs& args, std::int64_t begin, std::int64_t end) {
  with_storage(args.layout.storage, [&](auto storage) { response_rows<decltype(storage)>(args, begin, end); });
}

}  // namespace

template <>
const LocalResponseKernels& kernels_for<LocalResponseKernels, compiled_isa>() {
  static constexpr LocalResponseKernels kernels{local_response};
  return kernels;
}

}  // namespace convoy::cpu
