// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd_loops.hpp"

#include "backend/cpu/partial_registers.hpp"

namespace convoy::cpu {
namespace {

/// Lanes of a block that are in memory.
CONVOY_INLINE int64_t lanes_of(const TensorLayout& l, int64_t block) {
  return l.blocked() ? lanes : lanes_from(l.channels, block);
}
/// `to` on a register's bytes.
CONVOY_INLINE void write_past_caches(float* to, Register v) {
#ifdef __AVX512F__
  _mm512_stream_ps(to, reinterpret_cast<__m512>(v));
#else
  _mm256_stream_ps(to, reinterpret_cast<__m256>(v));
#endif
}

// The points are 0, a, -a, b, -b and infinity. With 5/8 and 3/2 all constants but G's are exact, and rounding errors
// are half of those with 1 and 2.
constexpr float a1 = 0.625F, b1 = 1.5F, a2 = a1 * a1, b2 = b1 * b1, a3 = a1 * a2, b3 = b1 * b2;
/// 1 / M'(p) of M = x (x^2 - a^2) (x^2 - b^2).
constexpr double at_zero = 1 / (double{a2} * b2), at_a = 1 / (2 * double{a2} * (double{a2} - b2)),
                 at_b = 1 / (2 * double{b2} * (double{b2} - a2));

/// B': the coefficients of M / (x - p).
CONVOY_INLINE void source_line(const Register* d, Register* out) {
  const Register even_a = d[4] - b2 * d[2], odd_a = a1 * (d[3] - b2 * d[1]);
  const Register even_b = d[4] - a2 * d[2], odd_b = b1 * (d[3] - a2 * d[1]);
  out[0] = (d[4] - (a2 + b2) * d[2]) + (a2 * b2) * d[0];
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = (d[5] - (a2 + b2) * d[3]) + (a2 * b2) * d[1];
}
/// A': the powers of the points.
CONVOY_INLINE void result_line(const Register* m, Register* out) {
  const Register sum_a = m[1] + m[2], odd_a = m[1] - m[2];
  const Register sum_b = m[3] + m[4], odd_b = m[3] - m[4];
  out[0] = m[0] + sum_a + sum_b;
  out[1] = a1 * odd_a + b1 * odd_b;
  out[2] = a2 * sum_a + b2 * sum_b;
  out[3] = (a3 * odd_a + b3 * odd_b) + m[5];
}
/// A: four to six.
CONVOY_INLINE void gradient_line(const Register* d, Register* out) {
  const Register even_a = d[0] + a2 * d[2], odd_a = a1 * d[1] + a3 * d[3];
  const Register even_b = d[0] + b2 * d[2], odd_b = b1 * d[1] + b3 * d[3];
  out[0] = d[0];
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = d[3];
}
/// G: three to six.
CONVOY_INLINE void filter_line(const Register* g, Register* out) {
  const Register even_a = static_cast<float>(at_a) * g[0] + static_cast<float>(at_a * a2) * g[2];
  const Register odd_a = static_cast<float>(at_a * a1) * g[1];
  const Register even_b = static_cast<float>(at_b) * g[0] + static_cast<float>(at_b * b2) * g[2];
  const Register odd_b = static_cast<float>(at_b * b1) * g[1];
  out[0] = static_cast<float>(at_zero) * g[0];
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = g[2];
}
/// G': six to three.
CONVOY_INLINE void filter_gradient_line(const Register* m, Register* out) {
  const Register sum_a = m[1] + m[2], odd_a = m[1] - m[2];
  const Register sum_b = m[3] + m[4], odd_b = m[3] - m[4];
  out[0] = static_cast<float>(at_zero) * m[0] + static_cast<float>(at_a) * sum_a + static_cast<float>(at_b) * sum_b;
  out[1] = static_cast<float>(at_a * a1) * odd_a + static_cast<float>(at_b * b1) * odd_b;
  out[2] = static_cast<float>(at_a * a2) * sum_a + static_cast<float>(at_b * b2) * sum_b + m[5];
}

struct TilePlace {
  int64_t image, y, x;
};
CONVOY_INLINE TilePlace tile_at(const WinogradTiles& t, int64_t unit) {
  const int64_t id = t.first + unit, per_image = t.rows * t.columns, rest = id % per_image;
  return {id / per_image, rest / t.columns * 4 - t.border, rest % t.columns * 4 - t.border};
}
template <class T>
CONVOY_INLINE T* block_at(const WinogradTiles& t, int64_t image, int64_t block) {
  return static_cast<T*>(t.tensor) + image * t.layout.image + block * t.layout.block;
}
template <class T>
CONVOY_INLINE T* points_at(const WinogradTiles& t, int64_t unit, int64_t block) {
  return static_cast<T*>(t.points) + (block * t.capacity + unit) * lanes;
}

/// Asks for the pixels of a tile, size x size from `skip` columns on, before they are used. A processor's own
/// prefetching can't: a tile's lines are short, and those of its blocks lie far apart.
template <class T, int size, int skip, bool writes>
CONVOY_INLINE void prefetch_tile(const WinogradTiles& t, const TilePlace& tile, int64_t block) {
  const TensorLayout& l = t.layout;
  const T* const base = block_at<T>(t, tile.image, block) + (tile.x + skip) * l.pixel;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t y = tile.y + i;
    if (y < 0 || y >= l.height) continue;
#pragma GCC unroll 4
    for (int j = 0; j < size - skip; ++j) __builtin_prefetch(base + (y * l.width + j) * l.pixel, writes ? 1 : 0, 3);
  }
}

template <class T>
alignas(64) constexpr T zeros[lanes] = {};

/// Reads one block of a tile of size x size, zero outside the tensor, and calls put(point, part, register) for it with
/// `line` applied in both directions.
template <class T, int size, auto line, class Put>
CONVOY_INLINE void transform_block(const WinogradTiles& t, const TilePlace& tile, int64_t block, Put put) {
  const TensorLayout& l = t.layout;
  const int64_t left = tile.x < 0 ? -tile.x : 0, right = l.width - tile.x < size ? l.width - tile.x : size;
  const T* const base = block_at<T>(t, tile.image, block);
  const T* from[size];
  int64_t pixel[size];
  for (int i = 0; i < size; ++i) {
    const int64_t y = tile.y + i;
    const bool outside = y < 0 || y >= l.height;
    from[i] = outside ? zeros<T> : base + (y * l.width + tile.x) * l.pixel;
    pixel[i] = outside ? 0 : l.pixel;
  }
  for_parts(lanes_of(l, block), [&](int part, int64_t count, auto partial) CONVOY_INLINED {
    Register half[6 * size];
    for (int64_t j = 0; j < size; ++j) {
      Register d[size];
      if (j < left || j >= right) {
        for (int i = 0; i < 6; ++i) half[i * size + j] = Register{};
        continue;
      }
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) d[i] = read<partial>(from[i] + j * pixel[i] + part * width, count);
      Register out[6];
      line(d, out);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) half[i * size + j] = out[i];
    }
    for (int i = 0; i < 6; ++i) {
      Register out[6];
      line(half + i * size, out);
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) put(i * 6 + j, part, out[j]);
    }
  });
}

#ifdef __AVX512BF16__
/// Sixteen pairs in bf16.
CONVOY_INLINE __m512i interleave(Register first, Register second) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512bh both = _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first));
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both));
}

/// The units are pairs of tiles.
template <class T, int size, auto line>
CONVOY_INLINE void transform_pairs(const WinogradTiles& t, int64_t begin, int64_t end) {
  const int64_t tiles = t.first + t.capacity < t.tiles ? t.capacity : t.tiles - t.first;
  for (int64_t unit = 2 * begin; unit < 2 * end; unit += 2) {
    const TilePlace pair[2] = {tile_at(t, unit), tile_at(t, unit + 1)};
    const TilePlace next[2] = {tile_at(t, unit + 2), tile_at(t, unit + 3)};
    for (int64_t block = 0; block < t.layout.blocks(); ++block) {
      if (t.prefetch && unit + 2 < 2 * end)
        for (const TilePlace& tile : next) prefetch_tile<T, size, size - 4, false>(t, tile, block);
      Register first[winograd_points];
      transform_block<T, size, line>(t, pair[0], block,
                                     [&](int point, int, Register v) CONVOY_INLINED { first[point] = v; });
      auto* const to = points_at<Bf16>(t, unit, block);
      if (unit + 1 < tiles) {
        transform_block<T, size, line>(t, pair[1], block, [&](int point, int, Register v) CONVOY_INLINED {
          _mm512_storeu_si512(to + point * t.plane, interleave(first[point], v));
        });
      } else {
        for (int point = 0; point < winograd_points; ++point)
          _mm512_storeu_si512(to + point * t.plane, interleave(first[point], Register{}));
      }
    }
  }
}
#endif

template <class T, class P, int size, auto line>
CONVOY_INLINE void transform_tiles(const WinogradTiles& t, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = tile_at(t, unit), next = tile_at(t, unit + 1);
    for (int64_t block = 0; block < t.layout.blocks(); ++block) {
      P* const to = points_at<P>(t, unit, block);
      if (t.prefetch && unit + 1 < end) prefetch_tile<T, size, size - 4, false>(t, next, block);
      transform_block<T, size, line>(t, tile, block, [&](int point, int part, Register v) CONVOY_INLINED {
        write<false>(to + point * t.plane + part * width, v, width);
      });
    }
  }
}

template <int size, auto line>
CONVOY_INLINE void transform(const WinogradTiles& t, int64_t begin, int64_t end) {
  with_storage(t.layout.storage, [&](auto storage) CONVOY_INLINED {
    using T = decltype(storage);
#ifdef __AVX512BF16__
    if constexpr (std::is_same_v<T, Bf16>) {
      if (t.form == PanelForm::bf16_pairs) return transform_pairs<T, size, line>(t, begin, end);
      if (t.form == PanelForm::bf16) return transform_tiles<T, Bf16, size, line>(t, begin, end);
    }
#endif
    transform_tiles<T, float, size, line>(t, begin, end);
  });
}

void transform_source(const WinogradTiles& t, int64_t begin, int64_t end) { transform<6, source_line>(t, begin, end); }
void transform_gradient(const WinogradTiles& t, int64_t begin, int64_t end) {
  transform<4, gradient_line>(t, begin, end);
}

template <class T>
CONVOY_INLINE void write_tiles(const WinogradTiles& t, const float* bias, int64_t begin, int64_t end) {
  const TensorLayout& l = t.layout;
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = tile_at(t, unit), next = tile_at(t, unit + 1);
    const int64_t rows = l.height - tile.y < 4 ? l.height - tile.y : 4;
    const int64_t columns = l.width - tile.x < 4 ? l.width - tile.x : 4;
    for (int64_t block = 0; block < l.blocks(); ++block) {
      const float* const from = points_at<float>(t, unit, block);
      T* const to = block_at<T>(t, tile.image, block) + (tile.y * l.width + tile.x) * l.pixel;
      if (t.prefetch && unit + 1 < end) prefetch_tile<T, 4, 0, true>(t, next, block);
      for_parts(lanes_of(l, block), [&](int part, int64_t count, auto partial) CONVOY_INLINED {
        // The bias ends with the last channel, in blocked layouts too.
        const int64_t own = lanes_from(l.channels, block) - part * width;
        const float* const shifts = bias + block * lanes + part * width;
        const Register shift = !bias || own <= 0 ? Register{} : (own >= width ? read(shifts) : read_some(shifts, own));
        Register half[4 * 6];
        for (int j = 0; j < 6; ++j) {
          Register m[6], out[4];
#pragma GCC unroll 6
          for (int i = 0; i < 6; ++i) m[i] = read(from + (i * 6 + j) * t.plane + part * width);
          result_line(m, out);
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) half[i * 6 + j] = out[i];
        }
        for (int64_t i = 0; i < rows; ++i) {
          Register out[4];
          result_line(half + i * 6, out);
          T* const line = to + i * l.width * l.pixel + part * width;
          if (columns == 4) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) write<partial>(line + j * l.pixel, out[j] + shift, count);
          } else {
            for (int64_t j = 0; j < columns; ++j) write<partial>(line + j * l.pixel, out[j] + shift, count);
          }
        }
      });
    }
  }
}

void write_result(const WinogradTiles& t, const float* bias, int64_t begin, int64_t end) {
  with_storage(t.layout.storage, [&](auto storage) { write_tiles<decltype(storage)>(t, bias, begin, end); });
}

/// The filter of lane 0, its lanes, and the place of the first point for a unit of channels; `terms`: channels of a
/// unit.
struct FilterPlace {
  float* canonical;
  int64_t channel, lanes, to;
};
CONVOY_INLINE FilterPlace filter_at(const WinogradFilters& f, int64_t unit, int terms) {
  const int64_t units = (f.channels + terms - 1) / terms, block = unit / units, channel = unit % units * terms;
  return {f.canonical + block * lanes * f.lane + channel * f.channel, channel, lanes_from(f.lanes, block),
          unit * terms * lanes};
}

/// Calls put(point, registers of a block) for a filter of each lane.
template <class Put>
CONVOY_INLINE void transform_filter(const WinogradFilters& f, const float* canonical, int64_t count, Put put) {
  alignas(64) float g[9][lanes] = {};
  for (int64_t l = 0; l < count; ++l)
    for (int i = 0; i < 9; ++i) g[f.turned ? 8 - i : i][l] = canonical[l * f.lane + i];
  Register half[parts][6 * 3];
  for (int part = 0; part < parts; ++part) {
    for (int j = 0; j < 3; ++j) {
      const Register column[3] = {read(g[j] + part * width), read(g[3 + j] + part * width),
                                  read(g[6 + j] + part * width)};
      Register out[6];
      filter_line(column, out);
      for (int i = 0; i < 6; ++i) half[part][i * 3 + j] = out[i];
    }
  }
  for (int i = 0; i < 6; ++i) {
    Register out[parts][6];
    for (int part = 0; part < parts; ++part) filter_line(half[part] + i * 3, out[part]);
    for (int j = 0; j < 6; ++j)
      for (int part = 0; part < parts; ++part) put(i * 6 + j, part, out[part][j]);
  }
}

/// What no cache holds until it is read goes past them: a store would first read the line.
bool go_past_caches(const WinogradFilters& f) {
  constexpr int64_t cached_bytes = 4 << 20;
  return f.plane * winograd_points * (f.pairs ? 2 : 4) > cached_bytes;
}

void transform_filters_f32(const WinogradFilters& f, int64_t begin, int64_t end) {
  const bool past_caches = go_past_caches(f);
  for (int64_t unit = begin; unit < end; ++unit) {
    const FilterPlace place = filter_at(f, unit, 1);
    float* const to = static_cast<float*>(f.filters) + place.to;
    transform_filter(f, place.canonical, place.lanes, [&](int point, int part, Register v) CONVOY_INLINED {
      if (past_caches)
        write_past_caches(to + point * f.plane + part * width, v);
      else
        write(to + point * f.plane + part * width, v);
    });
  }
  if (past_caches) _mm_sfence();
}

#ifdef __AVX512BF16__
void transform_filters_bf16(const WinogradFilters& f, int64_t begin, int64_t end) {
  const bool past_caches = go_past_caches(f);
  for (int64_t unit = begin; unit < end; ++unit) {
    const FilterPlace place = filter_at(f, unit, 2);
    Bf16* const to = static_cast<Bf16*>(f.filters) + place.to;
    Register first[winograd_points];
    transform_filter(f, place.canonical, place.lanes,
                     [&](int point, int, Register v) CONVOY_INLINED { first[point] = v; });
    const int64_t second = place.channel + 1 < f.channels ? place.lanes : 0;  // no lanes: zeros
    transform_filter(f, place.canonical + f.channel, second, [&](int point, int, Register v) CONVOY_INLINED {
      const auto pairs = reinterpret_cast<Register>(interleave(first[point], v));
      auto* const line = reinterpret_cast<float*>(to + point * f.plane);
      if (past_caches)
        write_past_caches(line, pairs);
      else
        write(line, pairs);
    });
  }
  if (past_caches) _mm_sfence();
}
#endif

void transform_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
#ifdef __AVX512BF16__
  if (f.pairs) return transform_filters_bf16(f, begin, end);
#endif
  transform_filters_f32(f, begin, end);
}

void gather_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const FilterPlace place = filter_at(f, unit, 1);
    const float* const from = static_cast<const float*>(f.filters) + place.to;
    alignas(64) float g[9][lanes];
    for (int part = 0; part < parts; ++part) {
      Register half[3 * 6];
      for (int j = 0; j < 6; ++j) {
        Register m[6], out[3];
        for (int i = 0; i < 6; ++i) m[i] = read(from + (i * 6 + j) * f.plane + part * width);
        filter_gradient_line(m, out);
        for (int i = 0; i < 3; ++i) half[i * 6 + j] = out[i];
      }
      for (int i = 0; i < 3; ++i) {
        Register out[3];
        filter_gradient_line(half + i * 6, out);
        for (int j = 0; j < 3; ++j) write(g[i * 3 + j] + part * width, out[j]);
      }
    }
    for (int64_t l = 0; l < place.lanes; ++l)
      for (int i = 0; i < 9; ++i) place.canonical[l * f.lane + i] = g[i][l];
  }
}

template <class T>
CONVOY_INLINE void sum_blocks(const WinogradTiles& t, int64_t images, float* bias, bool add, int64_t begin,
                              int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t channels = lanes_from(t.layout.channels, block);
    for_parts(channels, [&](int part, int64_t count, auto partial) CONVOY_INLINED {
      float* const to = bias + block * lanes + part * width;
      Register total = add ? read<partial>(to, count) : Register{};
      for (int64_t image = 0; image < images; ++image) {
        const T* const from = block_at<T>(t, image, block) + part * width;
        Register sum{};
        for (int64_t p = 0; p < t.layout.pixels(); ++p) sum += read<partial>(from + p * t.layout.pixel, count);
        total += sum;
      }
      write<partial>(to, total, count);
    });
  }
}

void sum_pixels(const WinogradTiles& t, int64_t images, float* bias, bool add, int64_t begin, int64_t end) {
  with_storage(t.layout.storage,
               [&](auto storage) { sum_blocks<decltype(storage)>(t, images, bias, add, begin, end); });
}

}  // namespace

template <>
const WinogradKernels& kernels_for<WinogradKernels, compiled_isa>() {
  static constexpr WinogradKernels kernels{transform_source,  transform_gradient, write_result,
                                           transform_filters, gather_filters,     sum_pixels};
  return kernels;
}

}  // namespace convoy::cpu
