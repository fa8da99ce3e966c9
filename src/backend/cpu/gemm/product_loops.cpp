// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/gemm/product_loops.hpp"

#include "backend/cpu/partial_registers.hpp"

namespace convoy::cpu {

// Block sizes that use all vector registers.
#ifdef __AVX512F__
constexpr int tile_rows = 12, gradient_channels = 8, paired = 2;
#else
constexpr int tile_rows = 6, gradient_channels = 6, paired = 1;
#endif

namespace {

/// What a product multiplies at once: one number of each side.
struct OneFloat {
  using Element = float;
  static constexpr int terms = 1;
  using Load = Register;
  CONVOY_INLINE static Load load(const float* from) { return read(from); }
  CONVOY_INLINE static void add(Register& sum, Load a, const float* b) { sum += a * *b; }
};

#ifdef __AVX512BF16__
/// Two numbers of each side in bf16, neighbours in memory.
struct Bf16Pairs {
  using Element = Bf16;
  static constexpr int terms = 2;
  using Load = __m512i;
  CONVOY_INLINE static Load load(const Bf16* from) { return _mm512_loadu_si512(from); }
  CONVOY_INLINE static void add(Register& sum, Load a, const Bf16* b) {
    int pair;
    __builtin_memcpy(&pair, b, sizeof pair);
    sum = reinterpret_cast<Register>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a),
                                                      reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair))));
  }
};
#endif

/// Numbers of a point's filters for one block of results, a channel's place filled up to `terms`.
template <class K>
CONVOY_INLINE int64_t filters_of_block(const Product& p) {
  return (p.source_channels + K::terms - 1) / K::terms * K::terms * lanes;
}

/// `rows` tiles times `registers` of result channels, over all source channels.
template <class K, int rows, int registers>
void multiply_block(const Product& p, const typename K::Element* filters, const typename K::Element* source,
                    float* result) {
  Register sum[rows][registers] = {};
  const int64_t panel = filters_of_block<K>(p);
  const auto add_channel = [&](int64_t c) {
    typename K::Load f[registers];
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n) f[n] = K::load(filters + n / parts * panel + c * lanes + n % parts * width);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < registers; ++n) K::add(sum[r][n], f[n], source + r * lanes + c);
    }
  };
  for (int64_t block = 0; block < p.source_channels / lanes; ++block) {
    for (int c = 0; c < lanes; c += K::terms) add_channel(c);
    filters += lanes * lanes;
    source += p.capacity * lanes;
  }
  for (int64_t c = 0; c < p.source_channels % lanes; c += K::terms) add_channel(c);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n)
      write(result + n / parts * p.capacity * lanes + r * lanes + n % parts * width, sum[r][n]);
  }
}

template <class K, int registers>
void multiply_panels(const Product& p, int64_t point, int64_t block) {
  const auto* const filters =
      static_cast<const typename K::Element*>(p.filters) + point * p.filter_plane + block * filters_of_block<K>(p);
  const auto* source = static_cast<const typename K::Element*>(p.source) + point * p.source_plane;
  float* result = static_cast<float*>(p.result) + point * p.result_plane + block * p.capacity * lanes;
  int64_t tile = 0;
  for (; tile + tile_rows <= p.tiles; tile += tile_rows)
    multiply_block<K, tile_rows, registers>(p, filters, source + tile * lanes, result + tile * lanes);
  with_number<tile_rows - 1>(p.tiles - tile, [&](auto rows) {
    multiply_block<K, decltype(rows)::value, registers>(p, filters, source + tile * lanes, result + tile * lanes);
  });
}

/// Calls visit(point, result block, registers at once) for the units [begin, end) of a product. What lies past the last
/// channel of the last block is left out where it fills a register.
template <class Visit>
CONVOY_INLINE void for_products(const Product& p, int64_t begin, int64_t end, Visit visit) {
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

template <class K>
void multiply(const Product& p, int64_t begin, int64_t end) {
  for_products(p, begin, end, [&](int64_t point, int64_t block, auto registers) {
    multiply_panels<K, decltype(registers)::value>(p, point, block);
  });
}

/// `rows` source channels times `registers` of result channels, over the tiles of a chain. What is there is added at
/// the end, so that the chain doesn't go on.
template <class K, int rows, int registers>
CONVOY_INLINE void gradient_block(const Product& p, const typename K::Element* source,
                                  const typename K::Element* result, float* filters) {
  const int64_t panel = p.source_channels * lanes;
  Register sum[rows][registers] = {};
  for (int64_t tile = 0; tile < p.tiles; tile += K::terms) {
    typename K::Load d[registers];
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n)
      d[n] = K::load(result + n / parts * p.capacity * lanes + tile * lanes + n % parts * width);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < registers; ++n) K::add(sum[r][n], d[n], source + tile * lanes + r * K::terms);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < registers; ++n) {
      float* const to = filters + n / parts * panel + r * lanes + n % parts * width;
      write(to, p.add ? read(to) + sum[r][n] : sum[r][n]);
    }
  }
}

/// `rest` source channels of a block, fewer than it has.
template <class K, int registers>
void gradient_of_rest(const Product& p, int64_t rest, const typename K::Element* source,
                      const typename K::Element* result, float* filters) {
  while (rest > 0) {
    // As few groups of nearly equal size as there are registers for.
    const int64_t groups = (rest + gradient_channels - 1) / gradient_channels, rows = (rest + groups - 1) / groups;
    with_number<gradient_channels>(rows, [&](auto channels) {
      gradient_block<K, decltype(channels)::value, registers>(p, source, result, filters);
    });
    source += rows * K::terms;
    filters += rows * lanes;
    rest -= rows;
  }
}

/// All source channels of the blocks [first, last).
template <class K, int registers>
void gradient_of_blocks(const Product& p, int64_t first, int64_t last, const typename K::Element* source,
                        const typename K::Element* result, float* filters) {
  const int64_t full = p.source_channels / lanes;
  source += first * p.capacity * lanes;
  filters += first * lanes * lanes;
  for (int64_t block = first; block < last && block < full; ++block) {
#ifdef __AVX512F__
    gradient_block<K, 8, registers>(p, source, result, filters);
    gradient_block<K, 8, registers>(p, source + 8 * K::terms, result, filters + 8 * lanes);
#else
    gradient_block<K, 6, registers>(p, source, result, filters);
    gradient_block<K, 5, registers>(p, source + 6 * K::terms, result, filters + 6 * lanes);
    gradient_block<K, 5, registers>(p, source + 11 * K::terms, result, filters + 11 * lanes);
#endif
    source += p.capacity * lanes;
    filters += lanes * lanes;
  }
  if (last > full) gradient_of_rest<K, registers>(p, p.source_channels % lanes, source, result, filters);
}

template <class K>
void filter_gradients(const Product& p, int64_t begin, int64_t end) {
  const int64_t source_blocks = (p.source_channels + lanes - 1) / lanes;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t piece = unit % p.pieces, product = unit / p.pieces;
    Product chain = p;
    for (int64_t first = 0; first < p.tiles; first += p.chain) {
      chain.tiles = p.tiles - first < p.chain ? p.tiles - first : p.chain;
      for_products(p, product, product + 1, [&](int64_t point, int64_t block, auto registers) {
        gradient_of_blocks<K, decltype(registers)::value>(
            chain, source_blocks * piece / p.pieces, source_blocks * (piece + 1) / p.pieces,
            static_cast<const typename K::Element*>(p.source) + point * p.source_plane + first * lanes,
            static_cast<const typename K::Element*>(p.result) + point * p.result_plane +
                (block * p.capacity + first) * lanes,
            static_cast<float*>(p.filters) + point * p.filter_plane + block * filters_of_block<OneFloat>(p));
      });
      chain.add = true;
    }
  }
}

}  // namespace

template <>
const ProductKernels& kernels_for<ProductKernels, compiled_isa>() {
#ifdef __AVX512BF16__
  static constexpr ProductKernels kernels{multiply<OneFloat>, filter_gradients<OneFloat>, multiply<Bf16Pairs>,
                                          filter_gradients<Bf16Pairs>};
#else
  static constexpr ProductKernels kernels{multiply<OneFloat>, filter_gradients<OneFloat>, nullptr, nullptr};
#endif
  return kernels;
}

}  // namespace convoy::cpu
