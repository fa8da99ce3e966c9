// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/winograd_loops.hpp"

#include <iterator>

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

constexpr float single(double value) { return static_cast<float>(value); }

/// Stride 1. The points are 0, a, -a, b, -b and infinity. With 5/8 and 3/2 all constants but G's are exact, and
/// rounding errors are half of those with 1 and 2.
struct Stride1 {
  static constexpr PointGroup groups[] = {{36, 1, 0}};
  static constexpr int points = 6;  ///< of a line
  static constexpr float a1 = 0.625F, b1 = 1.5F, a2 = a1 * a1, b2 = b1 * b1, a3 = a1 * a2, b3 = b1 * b2;
  /// 1 / M'(p) of M = x (x^2 - a^2) (x^2 - b^2).
  static constexpr double at_zero = 1 / (double{a2} * b2), at_a = 1 / (2 * double{a2} * (double{a2} - b2)),
                          at_b = 1 / (2 * double{b2} * (double{b2} - a2));
  static constexpr int64_t filter(int64_t row, int64_t column) { return row * points + column; }

  /// B': the coefficients of M / (x - p).
  struct Source {
    static constexpr int size = 6, overlap = 2;
    CONVOY_INLINE static void line(const Register* d, Register* out) {
      const Register even_a = d[4] - b2 * d[2], odd_a = a1 * (d[3] - b2 * d[1]);
      const Register even_b = d[4] - a2 * d[2], odd_b = b1 * (d[3] - a2 * d[1]);
      out[0] = (d[4] - (a2 + b2) * d[2]) + (a2 * b2) * d[0];
      out[1] = even_a + odd_a;
      out[2] = even_a - odd_a;
      out[3] = even_b + odd_b;
      out[4] = even_b - odd_b;
      out[5] = (d[5] - (a2 + b2) * d[3]) + (a2 * b2) * d[1];
    }
  };
  /// A': the powers of the points.
  struct Result {
    static constexpr int size = 4;
    CONVOY_INLINE static void line(const Register* m, Register* out) {
      const Register sum_a = m[1] + m[2], odd_a = m[1] - m[2];
      const Register sum_b = m[3] + m[4], odd_b = m[3] - m[4];
      out[0] = m[0] + sum_a + sum_b;
      out[1] = a1 * odd_a + b1 * odd_b;
      out[2] = a2 * sum_a + b2 * sum_b;
      out[3] = (a3 * odd_a + b3 * odd_b) + m[5];
    }
  };
  using DataSource = Source;
  using DataResult = Result;
  /// A: four to six.
  struct Gradient {
    static constexpr int size = 4, overlap = 0;
    CONVOY_INLINE static void line(const Register* d, Register* out) {
      const Register even_a = d[0] + a2 * d[2], odd_a = a1 * d[1] + a3 * d[3];
      const Register even_b = d[0] + b2 * d[2], odd_b = b1 * d[1] + b3 * d[3];
      out[0] = d[0];
      out[1] = even_a + odd_a;
      out[2] = even_a - odd_a;
      out[3] = even_b + odd_b;
      out[4] = even_b - odd_b;
      out[5] = d[3];
    }
  };
  /// G: three to six.
  CONVOY_INLINE static void filter_line(const Register* g, Register* out) {
    const Register even_a = single(at_a) * g[0] + single(at_a * a2) * g[2], odd_a = single(at_a * a1) * g[1];
    const Register even_b = single(at_b) * g[0] + single(at_b * b2) * g[2], odd_b = single(at_b * b1) * g[1];
    out[0] = single(at_zero) * g[0];
    out[1] = even_a + odd_a;
    out[2] = even_a - odd_a;
    out[3] = even_b + odd_b;
    out[4] = even_b - odd_b;
    out[5] = g[2];
  }
  /// G': six to three.
  CONVOY_INLINE static void filter_gradient_line(const Register* m, Register* out) {
    const Register sum_a = m[1] + m[2], odd_a = m[1] - m[2];
    const Register sum_b = m[3] + m[4], odd_b = m[3] - m[4];
    out[0] = single(at_zero) * m[0] + single(at_a) * sum_a + single(at_b) * sum_b;
    out[1] = single(at_a * a1) * odd_a + single(at_b * b1) * odd_b;
    out[2] = single(at_a * a2) * sum_a + single(at_b * b2) * sum_b + m[5];
  }
};

/// Stride 2 with a border of one pixel. Points of the outer taps: a, -a, b, -b and infinity, then those of the middle
/// tap. With 1/2 and 5/4 the rounding error is half of that with 0, 1, -1, 2 and infinity.
struct Stride2 {
  /// By rows, then columns: outer and outer, outer and middle, middle and outer, middle and middle.
  static constexpr PointGroup groups[] = {{25, 1, 0}, {5, 4, 25}, {5, 4, 30}, {1, 16, 35}};
  static constexpr int points = 9;
  static constexpr float a1 = 0.5F, b1 = 1.25F, a2 = a1 * a1, b2 = b1 * b1, a3 = a1 * a2, b3 = b1 * b2;
  /// 1 / M'(p) of M = (x^2 - a^2) (x^2 - b^2); for -p the sign changes.
  static constexpr double at_a = 1 / (2 * double{a1} * (double{a2} - b2)),
                          at_b = 1 / (2 * double{b1} * (double{b2} - a2));
  /// Number of a filter: the groups one after the other.
  static constexpr int64_t filter(int64_t row, int64_t column) {
    if (row < 5) return column < 5 ? row * 5 + column : 25 + row;
    return column < 5 ? 30 + column : 35;
  }

  /// B', A', A, G and G' of F(4, 2).
  CONVOY_INLINE static void outer_source(const Register* d, Register* out) {
    const Register even_a = a1 * (d[2] - b2 * d[0]), odd_a = d[3] - b2 * d[1];
    const Register even_b = b1 * (d[2] - a2 * d[0]), odd_b = d[3] - a2 * d[1];
    out[0] = odd_a + even_a;
    out[1] = odd_a - even_a;
    out[2] = odd_b + even_b;
    out[3] = odd_b - even_b;
    out[4] = (d[4] - (a2 + b2) * d[2]) + (a2 * b2) * d[0];
  }
  CONVOY_INLINE static void outer_result(const Register* m, Register* out) {
    const Register sum_a = m[0] + m[1], odd_a = m[0] - m[1];
    const Register sum_b = m[2] + m[3], odd_b = m[2] - m[3];
    out[0] = sum_a + sum_b;
    out[1] = a1 * odd_a + b1 * odd_b;
    out[2] = a2 * sum_a + b2 * sum_b;
    out[3] = (a3 * odd_a + b3 * odd_b) + m[4];
  }

  /// Of nine pixels, the outer taps read those at even places.
  struct Source {
    static constexpr int size = 9, overlap = 1;
    CONVOY_INLINE static void line(const Register* d, Register* out) {
      const Register outer[5] = {d[0], d[2], d[4], d[6], d[8]};
      outer_source(outer, out);
      for (int i = 0; i < 4; ++i) out[5 + i] = d[2 * i + 1];
    }
  };
  struct Result {
    static constexpr int size = 4;
    CONVOY_INLINE static void line(const Register* m, Register* out) {
      outer_result(m, out);
      for (int i = 0; i < 4; ++i) out[i] += m[5 + i];
    }
  };
  /// Pixel 2 i of dx is the middle tap times dy i; pixel 2 i + 1 is the last tap times dy i plus the first times dy
  /// i + 1: the outer taps of the turned filter.
  struct DataSource {
    static constexpr int size = 5, overlap = 1;
    CONVOY_INLINE static void line(const Register* d, Register* out) {
      outer_source(d, out);
      for (int i = 0; i < 4; ++i) out[5 + i] = d[i];
    }
  };
  struct DataResult {
    static constexpr int size = 8;
    CONVOY_INLINE static void line(const Register* m, Register* out) {
      Register outer[4];
      outer_result(m, outer);
      for (int i = 0; i < 4; ++i) out[2 * i] = m[5 + i], out[2 * i + 1] = outer[i];
    }
  };
  struct Gradient {
    static constexpr int size = 4, overlap = 0;
    CONVOY_INLINE static void line(const Register* d, Register* out) {
      const Register even_a = d[0] + a2 * d[2], odd_a = a1 * d[1] + a3 * d[3];
      const Register even_b = d[0] + b2 * d[2], odd_b = b1 * d[1] + b3 * d[3];
      out[0] = even_a + odd_a;
      out[1] = even_a - odd_a;
      out[2] = even_b + odd_b;
      out[3] = even_b - odd_b;
      out[4] = d[3];
      for (int i = 0; i < 4; ++i) out[5 + i] = d[i];
    }
  };
  CONVOY_INLINE static void filter_line(const Register* g, Register* out) {
    const Register even_a = single(at_a) * g[0], odd_a = single(at_a * a1) * g[2];
    const Register even_b = single(at_b) * g[0], odd_b = single(at_b * b1) * g[2];
    out[0] = odd_a + even_a;
    out[1] = odd_a - even_a;
    out[2] = odd_b + even_b;
    out[3] = odd_b - even_b;
    out[4] = g[2];
    out[5] = g[1];
  }
  CONVOY_INLINE static void filter_gradient_line(const Register* m, Register* out) {
    out[0] = single(at_a) * (m[0] - m[1]) + single(at_b) * (m[2] - m[3]);
    out[1] = m[5];
    out[2] = single(at_a * a1) * (m[0] + m[1]) + single(at_b * b1) * (m[2] + m[3]) + m[4];
  }
};

struct TilePlace {
  int64_t image, y, x;
};
CONVOY_INLINE TilePlace tile_at(const WinogradTiles& t, int64_t unit) {
  const int64_t id = t.first + unit, per_image = t.rows * t.columns, rest = id % per_image;
  return {id / per_image, rest / t.columns * t.step - t.border, rest % t.columns * t.step - t.border};
}
template <class T>
CONVOY_INLINE T* block_at(const WinogradTiles& t, int64_t image, int64_t block) {
  return static_cast<T*>(t.tensor) + image * t.layout.image + block * t.layout.block;
}
/// The points of one tile and block.
template <class Stride, class T>
class TilePoints {
 public:
  CONVOY_INLINE TilePoints(const WinogradTiles& t, int64_t unit, int64_t block) {
    T* group = static_cast<T*>(t.points);
    int n = 0;
    for (const PointGroup& g : Stride::groups) {
      first_[n] = group + (block * t.capacity + unit) * g.points_per_filter * lanes;
      plane_[n] = t.plane(g);
      group += g.filters * plane_[n++];
    }
  }
  CONVOY_INLINE T* at(int64_t row, int64_t column) const {
    if constexpr (Stride::points == 6) return first_[0] + (row * 6 + column) * plane_[0];
    if (row < 5) {
      if (column < 5) return first_[0] + (row * 5 + column) * plane_[0];
      return first_[1] + row * plane_[1] + (column - 5) * lanes;
    }
    if (column < 5) return first_[2] + column * plane_[2] + (row - 5) * lanes;
    return first_[3] + ((row - 5) * 4 + column - 5) * lanes;
  }

 private:
  T* first_[std::size(Stride::groups)];
  int64_t plane_[std::size(Stride::groups)];
};

/// Prefetches the pixels of the next tile. The previous tile of a row has read the first `overlap` columns already, so
/// it skips them. A processor's own prefetching finds no pattern: a tile's lines are short, and its blocks lie far
/// apart.
template <class T, int size, int overlap>
CONVOY_INLINE void prefetch_tile(const WinogradTiles& t, const TilePlace& tile, int64_t block) {
  const TensorLayout& l = t.layout;
  const int64_t top = tile.y < 0 ? 0 : tile.y, bottom = l.height - tile.y < size ? l.height : tile.y + size;
  const int64_t left = tile.x <= 0 ? 0 : tile.x + overlap, right = l.width - tile.x < size ? l.width : tile.x + size;
  const T* const base = block_at<T>(t, tile.image, block);
  for (int64_t y = top; y < bottom; ++y)
    for (int64_t x = left; x < right; ++x) __builtin_prefetch(base + (y * l.width + x) * l.pixel);
}

template <class T>
alignas(64) constexpr T zeros[lanes] = {};

/// Reads one block of a tile of size x size, zero outside the tensor, and calls put(row, column, part, register) for
/// the points: Line::line applied in both directions.
template <class Stride, class Line, class T, class Put>
CONVOY_INLINE void transform_block(const WinogradTiles& t, const TilePlace& tile, int64_t block, Put put) {
  constexpr int size = Line::size, points = Stride::points;
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
    Register half[points * size];
    for (int64_t j = 0; j < size; ++j) {
      Register d[size];
      if (j < left || j >= right) {
        for (int i = 0; i < points; ++i) half[i * size + j] = Register{};
        continue;
      }
#pragma GCC unroll 9
      for (int i = 0; i < size; ++i) d[i] = read<partial>(from[i] + j * pixel[i] + part * width, count);
      Register out[points];
      Line::line(d, out);
#pragma GCC unroll 9
      for (int i = 0; i < points; ++i) half[i * size + j] = out[i];
    }
    for (int i = 0; i < points; ++i) {
      Register out[points];
      Line::line(half + i * size, out);
#pragma GCC unroll 9
      for (int j = 0; j < points; ++j) put(i, j, part, out[j]);
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
template <class Line, class T>
CONVOY_INLINE void transform_pairs(const WinogradTiles& t, int64_t begin, int64_t end) {
  const int64_t tiles = t.first + t.capacity < t.tiles ? t.capacity : t.tiles - t.first;
  TilePlace next[2] = {tile_at(t, 2 * begin), tile_at(t, 2 * begin + 1)};
  for (int64_t unit = 2 * begin; unit < 2 * end; unit += 2) {
    const TilePlace pair[2] = {next[0], next[1]};
    for (int i = 0; i < 2; ++i) next[i] = tile_at(t, unit + 2 + i);
    const int64_t ahead = !t.prefetch || unit + 2 >= 2 * end ? 0 : (unit + 3 < tiles ? 2 : 1);
    for (int64_t block = 0; block < t.layout.blocks(); ++block) {
      for (int64_t i = 0; i < ahead; ++i) prefetch_tile<T, Line::size, Line::overlap>(t, next[i], block);
      Register first[winograd_filters];
      transform_block<Stride1, Line, T>(t, pair[0], block,
                                        [&](int i, int j, int, Register v) CONVOY_INLINED { first[i * 6 + j] = v; });
      const TilePoints<Stride1, Bf16> to(t, unit, block);
      if (unit + 1 < tiles) {
        transform_block<Stride1, Line, T>(t, pair[1], block, [&](int i, int j, int, Register v) CONVOY_INLINED {
          _mm512_storeu_si512(to.at(i, j), interleave(first[i * 6 + j], v));
        });
      } else {
        for (int i = 0; i < 6; ++i)
          for (int j = 0; j < 6; ++j) _mm512_storeu_si512(to.at(i, j), interleave(first[i * 6 + j], Register{}));
      }
    }
  }
}
#endif

template <class Stride, class Line, class T, class P>
CONVOY_INLINE void transform_tiles(const WinogradTiles& t, int64_t begin, int64_t end) {
  TilePlace next = tile_at(t, begin);
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = next;
    next = tile_at(t, unit + 1);
    const bool ahead = t.prefetch && unit + 1 < end;
    for (int64_t block = 0; block < t.layout.blocks(); ++block) {
      if (ahead) prefetch_tile<T, Line::size, Line::overlap>(t, next, block);
      const TilePoints<Stride, P> to(t, unit, block);
      transform_block<Stride, Line, T>(t, tile, block, [&](int i, int j, int part, Register v) CONVOY_INLINED {
        write<false>(to.at(i, j) + part * width, v, width);
      });
    }
  }
}

template <class Stride, class Line>
void transform(const WinogradTiles& t, int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<Stride, Stride2>) {
    transform_tiles<Stride, Line, float, float>(t, begin, end);
  } else {
    with_storage(t.layout.storage, [&](auto storage) CONVOY_INLINED {
      using T = decltype(storage);
#ifdef __AVX512BF16__
      if constexpr (std::is_same_v<T, Bf16>) {
        if (t.form == PanelForm::bf16_pairs) return transform_pairs<Line, T>(t, begin, end);
        if (t.form == PanelForm::bf16) return transform_tiles<Stride, Line, T, Bf16>(t, begin, end);
      }
#endif
      transform_tiles<Stride, Line, T, float>(t, begin, end);
    });
  }
}

template <class Stride, class Line, class T>
CONVOY_INLINE void write_tiles(const WinogradTiles& t, const float* bias, int64_t begin, int64_t end) {
  constexpr int size = Line::size, points = Stride::points;
  const TensorLayout& l = t.layout;
  TilePlace next = tile_at(t, begin);
  for (int64_t unit = begin; unit < end; ++unit) {
    const TilePlace tile = next;
    next = tile_at(t, unit + 1);
    const bool ahead = t.prefetch && unit + 1 < end;
    const int64_t rows = l.height - tile.y < size ? l.height - tile.y : size;
    const int64_t columns = l.width - tile.x < size ? l.width - tile.x : size;
    for (int64_t block = 0; block < l.blocks(); ++block) {
      if (ahead) prefetch_tile<T, size, 0>(t, next, block);
      const TilePoints<Stride, const float> from(t, unit, block);
      T* const to = block_at<T>(t, tile.image, block) + (tile.y * l.width + tile.x) * l.pixel;
      for_parts(lanes_of(l, block), [&](int part, int64_t count, auto partial) CONVOY_INLINED {
        // The bias ends with the last channel, in blocked layouts too.
        const int64_t own = lanes_from(l.channels, block) - part * width;
        const float* const shifts = bias + block * lanes + part * width;
        const Register shift = !bias || own <= 0 ? Register{} : (own >= width ? read(shifts) : read_some(shifts, own));
        Register half[size * points];
        for (int j = 0; j < points; ++j) {
          Register m[points], out[size];
#pragma GCC unroll 9
          for (int i = 0; i < points; ++i) m[i] = read(from.at(i, j) + part * width);
          Line::line(m, out);
#pragma GCC unroll 8
          for (int i = 0; i < size; ++i) half[i * points + j] = out[i];
        }
        for (int64_t i = 0; i < rows; ++i) {
          Register out[size];
          Line::line(half + i * points, out);
          T* const line = to + i * l.width * l.pixel + part * width;
          if (columns == size) {
#pragma GCC unroll 8
            for (int j = 0; j < size; ++j) write<partial>(line + j * l.pixel, out[j] + shift, count);
          } else {
            for (int64_t j = 0; j < columns; ++j) write<partial>(line + j * l.pixel, out[j] + shift, count);
          }
        }
      });
    }
  }
}

template <class Stride, class Line>
void write_result(const WinogradTiles& t, const float* bias, int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<Stride, Stride2>) {
    write_tiles<Stride, Line, float>(t, bias, begin, end);
  } else {
    with_storage(t.layout.storage,
                 [&](auto storage) { write_tiles<Stride, Line, decltype(storage)>(t, bias, begin, end); });
  }
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

/// Calls put(number of the filter, part, register) for a filter of each lane.
template <class Stride, class Put>
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
      Stride::filter_line(column, out);
      for (int i = 0; i < 6; ++i) half[part][i * 3 + j] = out[i];
    }
  }
  for (int i = 0; i < 6; ++i) {
    Register out[parts][6];
    for (int part = 0; part < parts; ++part) Stride::filter_line(half[part] + i * 3, out[part]);
    for (int j = 0; j < 6; ++j)
      for (int part = 0; part < parts; ++part) put(Stride::filter(i, j), part, out[part][j]);
  }
}

/// What no cache holds until it is read goes past them: a store would first read the line.
bool go_past_caches(const WinogradFilters& f) {
  constexpr int64_t cached_bytes = 4 << 20;
  return f.plane * winograd_filters * (f.pairs ? 2 : 4) > cached_bytes;
}

template <class Stride>
void transform_filters_f32(const WinogradFilters& f, int64_t begin, int64_t end) {
  const bool past_caches = go_past_caches(f);
  for (int64_t unit = begin; unit < end; ++unit) {
    const FilterPlace place = filter_at(f, unit, 1);
    float* const to = static_cast<float*>(f.filters) + place.to;
    transform_filter<Stride>(f, place.canonical, place.lanes, [&](int64_t n, int part, Register v) CONVOY_INLINED {
      if (past_caches)
        write_past_caches(to + n * f.plane + part * width, v);
      else
        write(to + n * f.plane + part * width, v);
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
    Register first[winograd_filters];
    transform_filter<Stride1>(f, place.canonical, place.lanes,
                              [&](int64_t n, int, Register v) CONVOY_INLINED { first[n] = v; });
    const int64_t second = place.channel + 1 < f.channels ? place.lanes : 0;  // no lanes: zeros
    transform_filter<Stride1>(f, place.canonical + f.channel, second, [&](int64_t n, int, Register v) CONVOY_INLINED {
      const auto pairs = reinterpret_cast<Register>(interleave(first[n], v));
      auto* const line = reinterpret_cast<float*>(to + n * f.plane);
      if (past_caches)
        write_past_caches(line, pairs);
      else
        write(line, pairs);
    });
  }
  if (past_caches) _mm_sfence();
}
#endif

template <class Stride>
void transform_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
#ifdef __AVX512BF16__
  if (f.pairs) return transform_filters_bf16(f, begin, end);
#endif
  transform_filters_f32<Stride>(f, begin, end);
}

template <class Stride>
void gather_filters(const WinogradFilters& f, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const FilterPlace place = filter_at(f, unit, 1);
    const float* const from = static_cast<const float*>(f.filters) + place.to;
    alignas(64) float g[9][lanes];
    for (int part = 0; part < parts; ++part) {
      Register half[3 * 6];
      for (int j = 0; j < 6; ++j) {
        Register m[6], out[3];
        for (int i = 0; i < 6; ++i) m[i] = read(from + Stride::filter(i, j) * f.plane + part * width);
        Stride::filter_gradient_line(m, out);
        for (int i = 0; i < 3; ++i) half[i * 6 + j] = out[i];
      }
      for (int i = 0; i < 3; ++i) {
        Register out[3];
        Stride::filter_gradient_line(half + i * 6, out);
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

template <class Stride>
constexpr WinogradTransforms transforms_of() {
  return {.groups = Stride::groups,
          .read_x = transform<Stride, typename Stride::Source>,
          .write_y = write_result<Stride, typename Stride::Result>,
          .read_dy = transform<Stride, typename Stride::DataSource>,
          .write_dx = write_result<Stride, typename Stride::DataResult>,
          .read_dy_for_filters = transform<Stride, typename Stride::Gradient>,
          .pack_filters = transform_filters<Stride>,
          .unpack_filters = gather_filters<Stride>};
}

}  // namespace

template <>
const WinogradKernels& kernels_for<WinogradKernels, compiled_isa>() {
  static constexpr WinogradKernels kernels{transforms_of<Stride1>(), transforms_of<Stride2>(), sum_pixels};
  return kernels;
}

}  // namespace convoy::cpu
