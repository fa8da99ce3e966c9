// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd_loops.hpp"

#include <immintrin.h>

#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

// One machine register: sixteen lanes are `parts` of them.
#ifdef __AVX512F__
using Register = Vector;
constexpr int tile_rows = 12, gradient_channels = 8, paired = 2;
#else
using Register = Vector::Part;
constexpr int tile_rows = 6, gradient_channels = 6, paired = 1;
#endif
constexpr int width = sizeof(Register) / 4, parts = 16 / width;
using Loose = float __attribute__((vector_size(sizeof(Register)), aligned(4), may_alias));

CONVOY_INLINE Register read(const float* from) { return *reinterpret_cast<const Loose*>(from); }
CONVOY_INLINE void write(float* to, Register v) { *reinterpret_cast<Loose*>(to) = v; }

#ifdef __AVX512F__
CONVOY_INLINE __mmask16 first(int64_t count) { return static_cast<__mmask16>((1U << count) - 1); }
CONVOY_INLINE Register read_some(const float* from, int64_t count) {
  return reinterpret_cast<Register>(_mm512_maskz_loadu_ps(first(count), from));
}
CONVOY_INLINE void write_some(float* to, Register v, int64_t count) {
  _mm512_mask_storeu_ps(to, first(count), reinterpret_cast<__m512>(v));
}
#else
CONVOY_INLINE __m256i first(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
CONVOY_INLINE Register read_some(const float* from, int64_t count) {
  return reinterpret_cast<Register>(_mm256_maskload_ps(from, first(count)));
}
CONVOY_INLINE void write_some(float* to, Register v, int64_t count) {
  _mm256_maskstore_ps(to, first(count), reinterpret_cast<__m256>(v));
}
#endif
/// `count`: elements that exist where partial, fewer than a register has; the others read as 0.
template <bool partial>
CONVOY_INLINE Register read(const float* from, int64_t count) {
  if constexpr (partial) return read_some(from, count);
  return read(from);
}
template <bool partial>
CONVOY_INLINE void write(float* to, Register v, int64_t count) {
  if constexpr (partial)
    write_some(to, v, count);
  else
    write(to, v);
}
/// Calls visit(part, lanes of its register, partial?) for the registers of a block of `count` lanes.
template <class Visit>
CONVOY_INLINE void for_parts(int64_t count, Visit visit) {
  for (int part = 0; part < parts; ++part) {
    const int64_t rest = count - part * width;
    if (rest >= width)
      visit(part, rest, Flag<false>{});
    else if (rest > 0)
      visit(part, rest, Flag<true>{});
  }
}
CONVOY_INLINE int64_t lanes_from(int64_t channels, int64_t block) {
  const int64_t rest = channels - block * lanes;
  return rest < lanes ? rest : lanes;
}
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
CONVOY_INLINE float* block_at(const WinogradTiles& t, int64_t image, int64_t block) {
  return t.tensor + image * t.layout.image + block * t.layout.block;
}
CONVOY_INLINE float* points_at(const WinogradTiles& t, int64_t unit, int64_t block) {
  return t.points + (block * t.capacity + unit) * lanes;
}

alignas(64) constexpr float zeros[lanes] = {};

/// Reads tiles of size x size, zero outside the tensor, and writes them with `line` applied in both directions.
template <int size, class Line>
CONVOY_INLINE void transform(const WinogradTiles& t, int64_t begin, int64_t end, Line line) {
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
      for_parts(lanes_of(l, block), [&](int part, int64_t count, auto partial) {
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
          for (int j = 0; j < 6; ++j) write(to + (i * 6 + j) * t.plane + part * width, out[j]);
        }
      });
    }
  }
}

void transform_source(const WinogradTiles& t, int64_t begin, int64_t end) { transform<6>(t, begin, end, source_line); }
void transform_gradient(const WinogradTiles& t, int64_t begin, int64_t end) {
  transform<4>(t, begin, end, gradient_line);
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
      alignas(64) float shifts[lanes] = {};  // the bias ends with the last channel, in blocked layouts too
      for (int64_t i = 0; bias && i < lanes_from(l.channels, block); ++i) shifts[i] = bias[block * lanes + i];
      for_parts(lanes_of(l, block), [&](int part, int64_t count, auto partial) {
        const Register shift = read(shifts + part * width);
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
          float* const line = to + i * l.width * l.pixel + part * width;
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

/// `rows` tiles times `registers` of result channels, over all source channels.
template <int rows, int registers>
void multiply_block(const WinogradProduct& p, const float* filters, const float* source, float* result) {
  Register sum[rows][registers] = {};
  const int64_t panel = p.source_channels * lanes;
  for (int64_t block = 0; block < p.source_channels; block += lanes) {
    const int64_t channels = p.source_channels - block < lanes ? p.source_channels - block : lanes;
    for (int64_t c = 0; c < channels; ++c) {
      Register f[registers];
#pragma GCC unroll 4
      for (int n = 0; n < registers; ++n) f[n] = read(filters + n / parts * panel + c * lanes + n % parts * width);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int n = 0; n < registers; ++n) sum[r][n] += f[n] * source[r * lanes + c];
      }
    }
    filters += lanes * lanes;
    source += p.capacity * lanes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n)
      write(result + n / parts * p.capacity * lanes + r * lanes + n % parts * width, sum[r][n]);
  }
}

template <int rows, int registers>
void multiply_rest(const WinogradProduct& p, int64_t rest, const float* filters, const float* source, float* result) {
  if constexpr (rows > 0) {
    if (rest == rows) return multiply_block<rows, registers>(p, filters, source, result);
    multiply_rest<rows - 1, registers>(p, rest, filters, source, result);
  }
}

/// Where a point's filters of a result block are.
CONVOY_INLINE float* filters_at(const WinogradProduct& p, int64_t point, int64_t block) {
  return p.filters + point * p.filter_plane + block * p.source_channels * lanes;
}

template <int registers>
void multiply_panels(const WinogradProduct& p, int64_t point, int64_t block) {
  const float* const filters = filters_at(p, point, block);
  const float* source = p.source + point * p.source_plane;
  float* result = p.result + point * p.result_plane + block * p.capacity * lanes;
  int64_t tile = 0;
  for (; tile + tile_rows <= p.tiles; tile += tile_rows)
    multiply_block<tile_rows, registers>(p, filters, source + tile * lanes, result + tile * lanes);
  multiply_rest<tile_rows - 1, registers>(p, p.tiles - tile, filters, source + tile * lanes, result + tile * lanes);
}

/// Calls visit(point, result block, registers at once) for the units [begin, end) of a product. What lies past the last
/// channel of the last block is left out where it fills a register.
template <class Visit>
CONVOY_INLINE void for_products(const WinogradProduct& p, int64_t begin, int64_t end, Visit visit) {
  const int64_t pairs = (p.result_blocks + 1) / 2;
  const auto one = [&](int64_t point, int64_t block) {
    if (parts == 2 && lanes_from(p.result_channels, block) <= width)
      visit(point, block, Number<1>{});
    else
      visit(point, block, Number<parts>{});
  };
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t point = unit / pairs, block = unit % pairs * 2;
    const bool whole = block + 2 <= p.result_blocks;
    if (paired == 2 && whole) {
      visit(point, block, Number<paired * parts>{});
    } else {
      one(point, block);
      if (whole) one(point, block + 1);
    }
  }
}

void multiply(const WinogradProduct& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto registers) {
    multiply_panels<decltype(registers)::value>(p, point, block);
  });
}

/// `rows` source channels times `registers` of result channels, over all tiles.
template <int rows, int registers>
CONVOY_INLINE void gradient_block(const WinogradProduct& p, const float* source, const float* result, float* filters) {
  const int64_t panel = p.source_channels * lanes;
  Register sum[rows][registers];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n)
      sum[r][n] = p.add ? read(filters + n / parts * panel + r * lanes + n % parts * width) : Register{};
  }
  for (int64_t tile = 0; tile < p.tiles; ++tile) {
    Register d[registers];
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n)
      d[n] = read(result + n / parts * p.capacity * lanes + tile * lanes + n % parts * width);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < registers; ++n) sum[r][n] += d[n] * source[tile * lanes + r];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n) write(filters + n / parts * panel + r * lanes + n % parts * width, sum[r][n]);
  }
}

template <int rows, int registers>
CONVOY_INLINE void gradient_rows(const WinogradProduct& p, int64_t wanted, const float* source, const float* result,
                                 float* filters) {
  if constexpr (rows > 0) {
    if (wanted == rows) return gradient_block<rows, registers>(p, source, result, filters);
    gradient_rows<rows - 1, registers>(p, wanted, source, result, filters);
  }
}

void filter_gradients(const WinogradProduct& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto registers) {
    float* const filters = filters_at(p, point, block);
    const float* const source = p.source + point * p.source_plane;
    const float* const result = p.result + point * p.result_plane + block * p.capacity * lanes;
    for (int64_t c = 0; c < p.source_channels;) {
      // The channels of a block in as few groups of nearly equal size as there are registers for.
      const int64_t rest = (p.source_channels - c < lanes - c % lanes) ? p.source_channels - c : lanes - c % lanes;
      const int64_t groups = (rest + gradient_channels - 1) / gradient_channels, rows = (rest + groups - 1) / groups;
      gradient_rows<gradient_channels, decltype(registers)::value>(
          p, rows, source + c / lanes * p.capacity * lanes + c % lanes, result, filters + c * lanes);
      c += rows;
    }
  });
}

/// Calls visit(canonical filter of lane 0, lanes, transformed filters) for the units [begin, end).
template <class Visit>
CONVOY_INLINE void for_filters(const WinogradFilters& f, int64_t begin, int64_t end, Visit visit) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit / f.channels, channel = unit % f.channels;
    visit(f.canonical + block * lanes * f.lane + channel * f.channel, lanes_from(f.lanes, block),
          f.filters + unit * lanes);
  }
}

void transform_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
  // What no cache holds until it is read goes past them: a store would first read the line.
  constexpr int64_t cached_bytes = 4 << 20;
  const bool past_caches = f.plane * winograd_points * 4 > cached_bytes;
  for_filters(f, begin, end, [&](const float* canonical, int64_t count, float* to) {
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
      for (int j = 0; j < 6; ++j) {
        for (int part = 0; part < parts; ++part) {
          float* const place = to + (i * 6 + j) * f.plane + part * width;
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
  for_filters(f, begin, end, [&](float* canonical, int64_t count, const float* from) {
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
    for (int64_t l = 0; l < count; ++l)
      for (int i = 0; i < 9; ++i) canonical[l * f.lane + i] = g[i][l];
  });
}

void sum_pixels(const WinogradTiles& t, int64_t images, float* bias, bool add, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t channels = lanes_from(t.layout.channels, block);
    for_parts(channels, [&](int part, int64_t count, auto partial) {
      float* const to = bias + block * lanes + part * width;
      Register total = add ? read<partial>(to, count) : Register{};
      for (int64_t image = 0; image < images; ++image) {
        const float* const from = block_at(t, image, block) + part * width;
        Register sum{};
        for (int64_t p = 0; p < t.layout.pixels(); ++p) sum += read<partial>(from + p * t.layout.pixel, count);
        total += sum;
      }
      write<partial>(to, total, count);
    });
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
