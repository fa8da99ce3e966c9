// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/grouped/grouped_loops.hpp"

#include <immintrin.h>

#include <cstring>

#include "backend/cpu/registers.hpp"
#include "backend/cpu/run_total.hpp"
#include "backend/cpu/vector_loops.hpp"

namespace convoy::cpu {
namespace {

// A tile of results, the weights of a run, a source pixel and an order of lanes fill the registers there are; and so do
// the sums of a gradient, some pixels of dy, a source pixel and the orders.
#ifdef __AVX512F__
constexpr int large_tile = 14, middle_tile = 8, small_tile = 4;
constexpr int most_sums = 16, most_permuted_sums = 16;
#else
constexpr int large_tile = 8, middle_tile = 8, small_tile = 4;
constexpr int most_sums = 10, most_permuted_sums = 6;
#endif

/// Each lane's first of its group.
CONVOY_INLINE LaneOrder first_of_group(int group) {
  LaneOrder order{};
  for (int l = 0; l < register_lanes; ++l) order[l] = l / group * group;
  return order;
}

/// Calls read(pixel) for those inside the tensor.
template <class Read>
CONVOY_INLINE void fill_with(const WindowCopy& c, Read read_pixel) {
  const TensorLayout& l = c.layout;
  for (int64_t i = 0; i < c.rows; ++i) {
    const int64_t y = c.top + i;
    const bool outside = y < 0 || y >= l.height;
    for (int64_t part = 0; part < c.step; ++part) {
      float* const to = c.plane + i * c.row + part * c.part;
      // Columns left + part + j step from 0 to width.
      const int64_t start = c.left + part;
      int64_t begin = start >= 0 ? 0 : (-start + c.step - 1) / c.step;
      int64_t end = l.width > start ? (l.width - start + c.step - 1) / c.step : 0;
      end = end < c.columns ? end : c.columns;
      if (outside || end <= begin) begin = end = 0;
      std::memset(to, 0, static_cast<std::size_t>(begin * lanes) * 4);
      for (int64_t j = begin; j < end; ++j) store_whole(to + j * lanes, read_pixel(y * l.width + start + j * c.step));
      std::memset(to + end * lanes, 0, static_cast<std::size_t>((c.columns - end) * lanes) * 4);
    }
  }
}

void fill(const WindowCopy& c) {
  const TensorLayout& l = c.layout;
  with_storage(l.storage, [&](auto element) {
    using T = decltype(element);
    if (c.offsets) {
      const T* const base = static_cast<const T*>(c.tensor) + c.image * l.image;
      fill_with(c, [&](int64_t pixel) {
        alignas(64) T values[lanes];
        for (int k = 0; k < lanes; ++k) values[k] = c.offsets[k] < 0 ? T{} : base[pixel * l.pixel + c.offsets[k]];
        return load<false>(values, lanes);
      });
      return;
    }
    with_flag(!l.blocked() && l.channels - c.block * lanes < lanes, [&](auto partial) {
      const Lines<const T, decltype(partial)::value> from(l, c.tensor, c.image, c.block);
      fill_with(c, [&](int64_t pixel) { return from(pixel, 0); });
    });
  });
}

void put(const RowsCopy& c) {
  const TensorLayout& l = c.layout;
  with_storage(l.storage, [&](auto element) {
    using T = decltype(element);
    with_flag(!l.blocked() && l.channels - c.block * lanes < lanes, [&](auto partial) {
      const Lines<T, decltype(partial)::value> to(l, c.tensor, c.image, c.block);
      for (int64_t i = 0; i < c.rows; ++i) {
        const int64_t pixel = (c.top + i * c.step) * l.width + c.left;
        for (int64_t j = 0; j < c.columns; ++j)
          to.put(pixel + j * c.step, 0, load_whole(c.from + (i * c.columns + j) * lanes));
      }
    });
  });
}

/// Where channel i of a lane's group is.
template <LaneSource lane>
CONVOY_INLINE int64_t channel_at(const FilterTaps& f, int64_t i) {
  if constexpr (lane == LaneSource::own) return i * f.source_channel;
  if constexpr (lane == LaneSource::shared) return (f.first + i) / lanes * f.source_channel + (f.first + i) % lanes;
  return 0;
}
/// Lane i is v's lane order[i].
CONVOY_INLINE Register in_order(Register v, LaneOrder order) {
#ifdef __AVX512F__
  // With a mask of all lanes, since GCC 12 warns of its own header in the form without.
  return reinterpret_cast<Register>(
      _mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(order), reinterpret_cast<__m512>(v)));
#else
  return reinterpret_cast<Register>(
      _mm256_permutevar8x32_ps(reinterpret_cast<__m256>(v), reinterpret_cast<__m256i>(order)));
#endif
}
template <LaneSource lane>
CONVOY_INLINE Register source_at(const float* x, LaneOrder order) {
  if constexpr (lane == LaneSource::shared) return Register{} + *x;
  if constexpr (lane == LaneSource::permuted) return in_order(read(x), order);
  return read(x);
}

/// Adds the taps of one run to the results of neighbours.
template <int pixels, int taps, LaneSource lane>
CONVOY_INLINE void add_run(Register* sum, const FilterTaps& f, const float* source, const float* weights, int64_t step,
                           LaneOrder order) {
  for (int64_t i = 0; i < f.channels; ++i) {
    const float* const x = source + channel_at<lane>(f, i);
    const float* const w = weights + i * f.weights_channel;
    Register tap[taps];
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) tap[t] = read(w + t * step);
#pragma GCC unroll 32
    for (int j = 0; j < pixels + taps - 1; ++j) {
      const Register v = source_at<lane>(x + j * lanes, order);
#pragma GCC unroll 8
      for (int t = 0; t < taps; ++t)
        if (j >= t && j - t < pixels) sum[j - t] += v * tap[t];
    }
    if constexpr (lane == LaneSource::permuted) order += 1;
  }
}

/// A tile of a row: the first `count` of `pixels` results are wanted.
template <int pixels, LaneSource lane>
void sum_tile(const LaneSum& s, const float* source, const float* weights, Register start, float* result,
              int64_t count) {
  const FilterTaps& f = s.filter;
  const LaneOrder order = first_of_group(f.group);
  Register sum[pixels];
#pragma GCC unroll 16
  for (int p = 0; p < pixels; ++p) sum[p] = start;
  for (int64_t r = 0; r < f.rows; ++r) {
    for (int64_t n = 0; n < f.count; ++n) {
      const TapRun& run = f.runs[n];
      const float* const x = source + run.source;
      const float* const w = weights + run.weights;
      switch (run.taps) {
        case 1:
          add_run<pixels, 1, lane>(sum, f, x, w, run.step, order);
          break;
        case 2:
          add_run<pixels, 2, lane>(sum, f, x, w, run.step, order);
          break;
        case 3:
          add_run<pixels, 3, lane>(sum, f, x, w, run.step, order);
          break;
        case 4:
          add_run<pixels, 4, lane>(sum, f, x, w, run.step, order);
          break;
        default:
          add_run<pixels, longest_run, lane>(sum, f, x, w, run.step, order);
          break;
      }
    }
    source += f.source_row;
    weights += f.weights_row;
  }
#pragma GCC unroll 16
  for (int p = 0; p < pixels; ++p)
    if (p < count) write(result + p * s.result_pixel, sum[p]);
}

template <LaneSource lane>
CONVOY_INLINE void sum_rows(const LaneSum& s) {
  for (int64_t row = 0; row < s.rows; ++row) {
    for (int part = 0; part < parts; ++part) {
      const int64_t shift = part * register_lanes;
      const float* source = s.source + row * s.source_row + (lane == LaneSource::shared ? 0 : shift);
      const float* const weights = s.weights + shift;
      float* result = s.result + row * s.result_row + shift;
      const Register start = read(s.bias + shift);
      for (int64_t rest = s.columns; rest > 0;) {
        int64_t tile = rest;
        if (rest >= large_tile) {
          tile = large_tile;
          sum_tile<large_tile, lane>(s, source, weights, start, result, tile);
        } else if (rest > small_tile) {
          tile = rest < middle_tile ? rest : middle_tile;
          sum_tile<middle_tile, lane>(s, source, weights, start, result, tile);
        } else {
          sum_tile<small_tile, lane>(s, source, weights, start, result, tile);
        }
        source += tile * lanes;
        result += tile * s.result_pixel;
        rest -= tile;
      }
    }
  }
}

void sum(const LaneSum& s) {
  switch (s.filter.lane) {
    case LaneSource::own:
      return sum_rows<LaneSource::own>(s);
    case LaneSource::permuted:
      return sum_rows<LaneSource::permuted>(s);
    case LaneSource::shared:
      return sum_rows<LaneSource::shared>(s);
  }
}

/// What is summed at once: the taps of a run for some streams, which are neighbouring channels of the group, or rows of
/// the filter.
struct Streams {
  const float* source;
  float* weights;
  int64_t source_stream, weights_stream, step;  ///< floats
  LaneOrder order;
};

template <int taps, int streams, LaneSource lane>
void gradient_run(const LaneGradient& g, const Streams& s, const float* dy) {
  constexpr int columns = gradient_columns;
  Register sum[streams][taps];
  LaneOrder order[streams];
#pragma GCC unroll 4
  for (int k = 0; k < streams; ++k) {
    order[k] = s.order + k;
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) sum[k][t] = read(s.weights + k * s.weights_stream + t * s.step);
  }
  for (int64_t row = 0; row < g.rows; ++row) {
    const float* x = s.source + row * g.source_row;
    const float* from_dy = dy + row * g.dy_row;
    for (int64_t column = 0; column < g.columns; column += columns) {
      Register d[columns];
#pragma GCC unroll 8
      for (int j = 0; j < columns; ++j) d[j] = read(from_dy + j * lanes);
#pragma GCC unroll 16
      for (int j = 0; j < columns + taps - 1; ++j) {
#pragma GCC unroll 4
        for (int k = 0; k < streams; ++k) {
          const float* const from = x + (lane == LaneSource::permuted ? 0 : k * s.source_stream) + j * lanes;
          const Register v = source_at<lane>(from, order[k]);
#pragma GCC unroll 8
          for (int t = 0; t < taps; ++t)
            if (j >= t && j - t < columns) sum[k][t] += v * d[j - t];
        }
      }
      x += columns * lanes;
      from_dy += columns * lanes;
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < streams; ++k) {
#pragma GCC unroll 8
    for (int t = 0; t < taps; ++t) write(s.weights + k * s.weights_stream + t * s.step, sum[k][t]);
  }
}

template <int taps, LaneSource lane>
CONVOY_INLINE constexpr int most_streams() {
  constexpr int most = (lane == LaneSource::permuted ? most_permuted_sums : most_sums) / taps;
  return most < 1 ? 1 : (most < 4 ? most : 4);
}

/// `count` streams, some at a time.
template <int taps, LaneSource lane>
CONVOY_INLINE int64_t gradient_some(const LaneGradient& g, const Streams& s, int64_t count, const float* dy) {
  constexpr int most = most_streams<taps, lane>();
  const int64_t streams = count < most ? count : most;
  with_number<most>(streams, [&](auto some) { gradient_run<taps, decltype(some)::value, lane>(g, s, dy); });
  return streams;
}

template <LaneSource lane>
CONVOY_INLINE int64_t gradient_streams(const LaneGradient& g, int taps, const Streams& s, int64_t count,
                                       const float* dy) {
  switch (taps) {
    case 1:
      return gradient_some<1, lane>(g, s, count, dy);
    case 2:
      return gradient_some<2, lane>(g, s, count, dy);
    case 3:
      return gradient_some<3, lane>(g, s, count, dy);
    case 4:
      return gradient_some<4, lane>(g, s, count, dy);
    default:
      return gradient_some<longest_run, lane>(g, s, count, dy);
  }
}

template <LaneSource lane>
CONVOY_INLINE void gradient_runs(const LaneGradient& g, int part) {
  const FilterTaps& f = g.filter;
  const int64_t shift = part * register_lanes;
  const bool by_rows = f.channels == 1;
  for (int64_t n = 0; n < f.count; ++n) {
    const TapRun& run = f.runs[n];
    Streams s{.source = g.source + run.source + (lane == LaneSource::shared ? 0 : shift),
              .weights = g.weights + run.weights + shift,
              .source_stream = by_rows ? f.source_row : (lane == LaneSource::shared ? 1 : f.source_channel),
              .weights_stream = by_rows ? f.weights_row : f.weights_channel,
              .step = run.step,
              .order = first_of_group(f.group)};
    const Streams start = s;
    if (by_rows) {
      for (int64_t r = 0; r < f.rows;) {
        s.source = start.source + r * f.source_row + channel_at<lane>(f, 0);
        s.weights = start.weights + r * f.weights_row;
        r += gradient_streams<lane>(g, run.taps, s, f.rows - r, g.dy + shift);
      }
      continue;
    }
    for (int64_t r = 0; r < f.rows; ++r) {
      for (int64_t i = 0; i < f.channels;) {
        // Neighbours in one plane, where lanes share it.
        int64_t count = f.channels - i;
        if (lane == LaneSource::shared && count > lanes - (f.first + i) % lanes) count = lanes - (f.first + i) % lanes;
        s.source = start.source + r * f.source_row + channel_at<lane>(f, i);
        s.weights = start.weights + r * f.weights_row + i * f.weights_channel;
        s.order = start.order + static_cast<int>(i);
        i += gradient_streams<lane>(g, run.taps, s, count, g.dy + shift);
      }
    }
  }
}

void gradient(const LaneGradient& g) {
  for (int part = 0; part < parts; ++part) {
    switch (g.filter.lane) {
      case LaneSource::own:
        gradient_runs<LaneSource::own>(g, part);
        break;
      case LaneSource::permuted:
        gradient_runs<LaneSource::permuted>(g, part);
        break;
      case LaneSource::shared:
        gradient_runs<LaneSource::shared>(g, part);
        break;
    }
  }
}

void flush(float* sums, double* total, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    total[i] += static_cast<double>(sums[i]);
    sums[i] = 0;
  }
}

void finish(const double* total, float* result, int64_t n, bool add) {
  for (int64_t i = 0; i < n; ++i)
    result[i] = static_cast<float>(add ? static_cast<double>(result[i]) + total[i] : total[i]);
}

void add_pixels(const float* plane, int64_t pixels, double* total) {
  RunTotal sum;
  add_terms(sum, pixels, [&](int64_t p) { return load_whole(plane + p * lanes); });
  for (int64_t c = 0; c < lanes; ++c) total[c] += sum.total[c];
}

}  // namespace

template <>
const GroupedKernels& kernels_for<GroupedKernels, compiled_isa>() {
  static constexpr GroupedKernels kernels{fill, put, sum, gradient, flush, finish, add_pixels};
  return kernels;
}

}  // namespace convoy::cpu
