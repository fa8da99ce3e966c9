// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/winograd/product_loops.hpp"

#include "backend/cpu/winograd/registers.hpp"

namespace convoy::cpu {
namespace {

/// `rows` tiles times `registers` of result channels, over all source channels.
template <int rows, int registers>
void multiply_block(const WinogradProduct& p, const float* filters, const float* source, float* result) {
  Register sum[rows][registers] = {};
  const int64_t panel = p.source_channels * lanes;
  const auto add_channel = [&](int64_t c) {
    Register f[registers];
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n) f[n] = read(filters + n / parts * panel + c * lanes + n % parts * width);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < registers; ++n) sum[r][n] += f[n] * source[r * lanes + c];
    }
  };
  for (int64_t block = 0; block < p.source_channels / lanes; ++block) {
    for (int c = 0; c < lanes; ++c) add_channel(c);
    filters += lanes * lanes;
    source += p.capacity * lanes;
  }
  for (int64_t c = 0; c < p.source_channels % lanes; ++c) add_channel(c);
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

/// `rows` source channels, fewer than a block.
template <int rows, int registers>
void gradient_rest(const WinogradProduct& p, int64_t wanted, const float* source, const float* result, float* filters) {
  if constexpr (rows > 0) {
    if (wanted == rows) return gradient_block<rows, registers>(p, source, result, filters);
    gradient_rest<rows - 1, registers>(p, wanted, source, result, filters);
  }
}

void filter_gradients(const WinogradProduct& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto registers) {
    constexpr int n = decltype(registers)::value;
    float* filters = filters_at(p, point, block);
    const float* source = p.source + point * p.source_plane;
    const float* const result = p.result + point * p.result_plane + block * p.capacity * lanes;
    for (int64_t c = 0; c < p.source_channels / lanes; ++c) {
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
    for (int64_t rest = p.source_channels % lanes; rest > 0;) {
      // As few groups of nearly equal size as there are registers for.
      const int64_t groups = (rest + gradient_channels - 1) / gradient_channels, rows = (rest + groups - 1) / groups;
      gradient_rest<gradient_channels, n>(p, rows, source, result, filters);
      source += rows;
      filters += rows * lanes;
      rest -= rows;
    }
  });
}

}  // namespace

template <>
const WinogradProducts& kernels_for<WinogradProducts, compiled_isa>() {
  static constexpr WinogradProducts kernels{multiply, filter_gradients};
  return kernels;
}

}  // namespace convoy::cpu
