// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/gemm/pixel_loops.hpp"

#include "backend/cpu/partial_registers.hpp"

namespace convoy::cpu {
namespace {

/// Splits [begin, end) into runs. The pixels of a run are `stride` apart in one row of the tensor, or all lie outside
/// it. Calls visit(first pixel in the panels, pixel of the tensor or null, number of pixels) for each.
template <class Visit>
CONVOY_INLINE void for_runs(const PixelGather& g, int64_t begin, int64_t end, Visit visit) {
  for (int64_t at = begin; at < end;) {
    const int64_t number = g.first + at, image = number / (g.rows * g.columns), row = number / g.columns % g.rows,
                  column = number % g.columns;
    const int64_t count = end - at < g.columns - column ? end - at : g.columns - column;
    const int64_t y = g.top + row * g.stride, x = g.left + column * g.stride;
    const auto within = [&](int64_t n) { return n < 0 ? 0 : (n < count ? n : count); };
    const bool outside = y < 0 || y >= g.layout.height;
    const int64_t before = outside ? count : within((-x + g.stride - 1) / g.stride);
    const int64_t inside = within((g.layout.width - x + g.stride - 1) / g.stride);
    if (before > 0) visit(at, nullptr, before);
    if (inside > before) {
      const int64_t pixel = y * g.layout.width + x + before * g.stride;
      visit(at + before, g.tensor + image * g.layout.image + pixel * g.layout.pixel, inside - before);
    }
    const int64_t after = inside > before ? inside : before;
    if (count > after) visit(at + after, nullptr, count - after);
    at += count;
  }
}

template <bool partial>
CONVOY_INLINE void copy_pixel(const float* from, int64_t channels, float* to) {
  if constexpr (partial) {
    for (int part = 0; part < parts; ++part) write(to + part * width, Register{});
    for_parts(channels, [&](int part, int64_t count, auto some)
                            CONVOY_INLINED { write(to + part * width, read<some>(from + part * width, count)); });
  } else {
    for (int part = 0; part < parts; ++part) write(to + part * width, read(from + part * width));
  }
}

void gather(const PixelGather& g, int64_t begin, int64_t end) {
  const int64_t blocks = g.layout.blocks(), panel = g.capacity * lanes, step = g.stride * g.layout.pixel;
  const int64_t full = g.layout.blocked() ? blocks : g.layout.channels / lanes;
  for_runs(g, begin, end, [&](int64_t at, const float* from, int64_t count) {
    float* const to = g.panels + at * lanes;
    if (!from) {
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t i = 0; i < count * lanes; i += width) write(to + block * panel + i, Register{});
    } else if (g.layout.blocked()) {
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t i = 0; i < count; ++i)
          copy_pixel<false>(from + block * g.layout.block + i * step, lanes, to + block * panel + i * lanes);
    } else {
      // A pixel's channels are neighbours.
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t block = 0; block < full; ++block)
          copy_pixel<false>(from + i * step + block * lanes, lanes, to + block * panel + i * lanes);
        if (full < blocks)
          copy_pixel<true>(from + i * step + full * lanes, g.layout.channels - full * lanes,
                           to + full * panel + i * lanes);
      }
    }
  });
}

}  // namespace

template <>
const PixelKernels& kernels_for<PixelKernels, compiled_isa>() {
  static constexpr PixelKernels kernels{gather};
  return kernels;
}

}  // namespace convoy::cpu
