// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd_loops.hpp"

#include <immintrin.h>

#include "backend/cpu/registers.hpp"
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

// What fills the registers there are.
#ifdef __AVX512F__
constexpr int tile_rows = 12, paired = 2;
#else
constexpr int tile_rows = 6, paired = 1;
#endif

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
CONVOY_INLINE float* block_at(const WinogradTiles& t, int64_t image, int64_t block) {
  return t.tensor + image * t.layout.image + block * t.layout.block;
}
CONVOY_INLINE float* points_at(const WinogradTiles& t, int64_t unit, int64_t block) {
  return t.points + (block * t.capacity + unit) * lanes;
}

alignas(64) constexpr float zeros[lanes] = {};

/// Reads tiles of size x size, zero outside the tensor, and writes them with `line` applied in both directions.
template <int size, class Line, class Row>
CONVOY_INLINE void transform(const WinogradTiles& t, int64_t begin, int64_t end, Line line, Row row) {
  const TensorLayout& l = t.layout;
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = tile_at(t, unit);
    const int64_t left = tile.x < 0 ? -tile.x : 0, right = l.width - tile.x < size ? l.width - tile.x : size;
    for (int64_t block = 0; block < l.blocks(); ++block) {
      const float* const base = block_at(t, tile.image, block);
      const float* from[size];
      int64_t pixel[size];
      for (int i = 0; i < size; ++i) {
        const int64_t y = tile.y + i;
        const bool outside = y < 0 || y >= l.height;
        from[i] = outside ? zeros : base + (y * l.width + tile.x) * l.pixel;
        pixel[i] = outside ? 0 : l.pixel;
      }
      float* const to = points_at(t, unit, block);
      for (int part = 0; part < parts; ++part) {
        Register half[6 * size];
        for (int64_t j = 0; j < size; ++j) {
          Register d[size];
          if (j < left || j >= right) {
            for (int i = 0; i < 6; ++i) half[i * size + j] = Register{};
            continue;
          }
#pragma GCC unroll 6
          for (int i = 0; i < size; ++i) d[i] = read(from[i] + j * pixel[i] + part * register_lanes);
          Register out[6];
          line(d, out);
#pragma GCC unroll 6
          for (int i = 0; i < 6; ++i) half[i * size + j] = out[i];
        }
        for (int i = 0; i < 6; ++i) {
          Register out[6];
          row(half + i * size, out);
#pragma GCC unroll 6
          for (int j = 0; j < 6; ++j) write(to + (i * 6 + j) * t.plane + part * register_lanes, out[j]);
        }
      }
    }
  }
}

void transform_source(const WinogradTiles& t, int64_t begin, int64_t end) {
  transform<6>(t, begin, end, source_line, source_line);
}
void transform_gradient(const WinogradTiles& t, int64_t begin, int64_t end) {
  transform<4>(t, begin, end, gradient_line, gradient_line);
}

void write_result(const WinogradTiles& t, const float* bias, int64_t begin, int64_t end) {
  const TensorLayout& l = t.layout;
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = tile_at(t, unit);
    const int64_t rows = l.height - tile.y < 4 ? l.height - tile.y : 4;
    const int64_t columns = l.width - tile.x < 4 ? l.width - tile.x : 4;
    for (int64_t block = 0; block < l.blocks(); ++block) {
      const float* const from = points_at(t, unit, block);
      float* const to = block_at(t, tile.image, block) + (tile.y * l.width + tile.x) * l.pixel;
      for (int part = 0; part < parts; ++part) {
        const Register shift = bias ? read(bias + block * lanes + part * register_lanes) : Register{};
        Register half[4 * 6];
        for (int j = 0; j < 6; ++j) {
          Register m[6], out[4];
#pragma GCC unroll 6
          for (int i = 0; i < 6; ++i) m[i] = read(from + (i * 6 + j) * t.plane + part * register_lanes);
          result_line(m, out);
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) half[i * 6 + j] = out[i];
        }
        for (int64_t i = 0; i < rows; ++i) {
          Register out[4];
          result_line(half + i * 6, out);
          float* const line = to + i * l.width * l.pixel + part * register_lanes;
          if (columns == 4) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) write(line + j * l.pixel, out[j] + shift);
          } else {
            for (int64_t j = 0; j < columns; ++j) write(line + j * l.pixel, out[j] + shift);
          }
        }
      }
    }
  }
}

/// `rows` tiles times `panels` result blocks, over all source channels.
template <int rows, int panels>
void multiply_block(const WinogradProduct& p, const float* filters, const float* source, float* result) {
  Register sum[rows][panels * parts] = {};
  const int64_t panel = p.source_blocks * lanes * lanes;
  for (int64_t block = 0; block < p.source_blocks; ++block) {
    for (int c = 0; c < lanes; ++c) {
      Register f[panels * parts];
#pragma GCC unroll 4
      for (int n = 0; n < panels * parts; ++n)
        f[n] = read(filters + n / parts * panel + c * lanes + n % parts * register_lanes);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int n = 0; n < panels * parts; ++n) sum[r][n] += f[n] * source[r * lanes + c];
      }
    }
    filters += lanes * lanes;
    source += p.capacity * lanes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < panels * parts; ++n)
      write(result + n / parts * p.capacity * lanes + r * lanes + n % parts * register_lanes, sum[r][n]);
  }
}

template <int rows, int panels>
void multiply_rest(const WinogradProduct& p, int64_t rest, const float* filters, const float* source, float* result) {
  if constexpr (rows > 0) {
    if (rest == rows) return multiply_block<rows, panels>(p, filters, source, result);
    multiply_rest<rows - 1, panels>(p, rest, filters, source, result);
  }
}

template <int panels>
void multiply_panels(const WinogradProduct& p, int64_t point, int64_t block) {
  const float* const filters = p.filters + point * p.filter_plane + block * p.source_blocks * lanes * lanes;
  const float* source = p.source + point * p.source_plane;
  float* result = p.result + point * p.result_plane + block * p.capacity * lanes;
  int64_t tile = 0;
  for (; tile + tile_rows <= p.tiles; tile += tile_rows)
    multiply_block<tile_rows, panels>(p, filters, source + tile * lanes, result + tile * lanes);
  multiply_rest<tile_rows - 1, panels>(p, p.tiles - tile, filters, source + tile * lanes, result + tile * lanes);
}

/// Calls visit(point, block, blocks at once) for the units [begin, end) of a product.
template <class Visit>
CONVOY_INLINE void for_products(const WinogradProduct& p, int64_t begin, int64_t end, Visit visit) {
  const int64_t pairs = (p.result_blocks + 1) / 2;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t point = unit / pairs, block = unit % pairs * 2;
    const bool whole = block + 2 <= p.result_blocks;
    if (paired == 2 && whole) {
      visit(point, block, Number<paired>{});
    } else {
      visit(point, block, Number<1>{});
      if (whole) visit(point, block + 1, Number<1>{});
    }
  }
}

void multiply(const WinogradProduct& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto panels) {
    multiply_panels<decltype(panels)::value>(p, point, block);
  });
}

/// `rows` source channels times `panels` result blocks, over all tiles.
template <int rows, int panels>
CONVOY_INLINE void gradient_block(const WinogradProduct& p, const float* source, const float* result, float* filters) {
  const int64_t panel = p.source_blocks * lanes * lanes;
  Register sum[rows][panels * parts];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < panels * parts; ++n)
      sum[r][n] = p.add ? read(filters + n / parts * panel + r * lanes + n % parts * register_lanes) : Register{};
  }
  for (int64_t tile = 0; tile < p.tiles; ++tile) {
    Register d[panels * parts];
#pragma GCC unroll 4
    for (int n = 0; n < panels * parts; ++n)
      d[n] = read(result + n / parts * p.capacity * lanes + tile * lanes + n % parts * register_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < panels * parts; ++n) sum[r][n] += d[n] * source[tile * lanes + r];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < panels * parts; ++n)
      write(filters + n / parts * panel + r * lanes + n % parts * register_lanes, sum[r][n]);
  }
}

void filter_gradients(const WinogradProduct& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto panels) {
    float* filters = p.filters + point * p.filter_plane + block * p.source_blocks * lanes * lanes;
    const float* source = p.source + point * p.source_plane;
    const float* const result = p.result + point * p.result_plane + block * p.capacity * lanes;
    for (int64_t c = 0; c < p.source_blocks; ++c) {
      constexpr int n = decltype(panels)::value;
#ifdef __AVX512F__
      gradient_block<8, n>(p, source, result, filters);
      gradient_block<8, n>(p, source + 8, result, filters + 8 * lanes);
#else
      gradient_block<6, n>(p, source, result, filters);
      gradient_block<5, n>(p, source + 6, result, filters + 6 * lanes);
      gradient_block<5, n>(p, source + 11, result, filters + 11 * lanes);
#endif
      source += p.capacity * lanes;
      filters += lanes * lanes;
    }
  });
}

/// Calls visit(canonical filter of lane 0, transformed filters) for the units [begin, end).
template <class Visit>
CONVOY_INLINE void for_filters(const WinogradFilters& f, int64_t begin, int64_t end, Visit visit) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit / f.channels, channel = unit % f.channels;
    visit(f.canonical + block * lanes * f.lane + channel * f.channel, f.filters + unit * lanes);
  }
}

void transform_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
  // What no cache holds until it is read goes past them: a store would first read the line.
  constexpr int64_t cached_bytes = 4 << 20;
  const bool past_caches = f.plane * winograd_points * 4 > cached_bytes;
  for_filters(f, begin, end, [&](const float* canonical, float* to) {
    alignas(64) float g[9][lanes];
    for (int l = 0; l < lanes; ++l)
      for (int i = 0; i < 9; ++i) g[f.turned ? 8 - i : i][l] = canonical[l * f.lane + i];
    Register half[parts][6 * 3];
    for (int part = 0; part < parts; ++part) {
      for (int j = 0; j < 3; ++j) {
        const Register column[3] = {read(g[j] + part * register_lanes), read(g[3 + j] + part * register_lanes),
                                    read(g[6 + j] + part * register_lanes)};
        Register out[6];
        filter_line(column, out);
        for (int i = 0; i < 6; ++i) half[part][i * 3 + j] = out[i];
      }
    }
    for (int i = 0; i < 6; ++i) {
      Register out[parts][6];
      for (int part = 0; part < parts; ++part) filter_line(half[part] + i * 3, out[part]);
      for (int j = 0; j < 6; ++j) {
        for (int part = 0; part < parts; ++part) {
          float* const place = to + (i * 6 + j) * f.plane + part * register_lanes;
          if (past_caches)
            write_past_caches(place, out[part][j]);
          else
            write(place, out[part][j]);
        }
      }
    }
  });
  if (past_caches) _mm_sfence();
}

void gather_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
  for_filters(f, begin, end, [&](float* canonical, const float* from) {
    alignas(64) float g[9][lanes];
    for (int part = 0; part < parts; ++part) {
      Register half[3 * 6];
      for (int j = 0; j < 6; ++j) {
        Register m[6], out[3];
        for (int i = 0; i < 6; ++i) m[i] = read(from + (i * 6 + j) * f.plane + part * register_lanes);
        filter_gradient_line(m, out);
        for (int i = 0; i < 3; ++i) half[i * 6 + j] = out[i];
      }
      for (int i = 0; i < 3; ++i) {
        Register out[3];
        filter_gradient_line(half + i * 6, out);
        for (int j = 0; j < 3; ++j) write(g[i * 3 + j] + part * register_lanes, out[j]);
      }
    }
    for (int l = 0; l < lanes; ++l)
      for (int i = 0; i < 9; ++i) canonical[l * f.lane + i] = g[i][l];
  });
}

void sum_pixels(const WinogradTiles& t, int64_t images, float* bias, bool add, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    Vector total = add ? load_whole(bias + block * lanes) : splat(0);
    for (int64_t image = 0; image < images; ++image) {
      const float* const from = block_at(t, image, block);
      Vector sum = splat(0);
      for (int64_t p = 0; p < t.layout.pixels(); ++p) sum += load_whole(from + p * t.layout.pixel);
      total += sum;
    }
    store_whole(bias + block * lanes, total);
  }
}

}  // namespace

template <>
const WinogradKernels& kernels_for<WinogradKernels, compiled_isa>() {
  static constexpr WinogradKernels kernels{transform_source, transform_gradient, write_result,   multiply,
                                           filter_gradients, transform_filters,  gather_filters, sum_pixels};
  return kernels;
}

}  // namespace convoy::cpu
