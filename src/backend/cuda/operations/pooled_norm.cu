// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pooled_norm.hpp"

#include "backend/cuda/kernels/pool_windows.cuh"
#include "backend/cuda/operations/norm_formulas.cuh"

namespace convoy::cuda {
namespace {

/// Gradients before the activation and pooling. What belongs to the thread's channels stays in registers.
template <class T, int Width>
struct PooledSource {
  const PooledGradient& from;
  Floats<Width> scale, shift;
  int c;

  __device__ __forceinline__ PooledSource(const PooledGradient& source, int channel)
      : from(source),
        scale(load_or<Width>(source.scale, channel, 1)),
        shift(load_or<Width>(source.shift, channel, 0)),
        c(channel) {}

  template <class Rule>
  __device__ __forceinline__ Floats<Width> g(const Rule& rule, Index row, const Floats<Width>& x) const {
    const PoolShape& shape = from.shape;
    const Pixel at(row, shape.h, shape.w);
    const Windows down(at.y, shape, shape.p), across(at.x, shape, shape.q);
    Floats<Width> sum = {};
#pragma unroll 1
    for (int p = down.begin; p < down.end; ++p) {
#pragma unroll 1
      for (int q = across.begin; q < across.end; ++q) {
        const int mine = (at.y + shape.pad - p * shape.stride) * shape.kernel + at.x + shape.pad - q * shape.stride;
        const Index window = ((static_cast<Index>(at.image) * shape.p + p) * shape.q + q) * shape.channels + c;
        const Floats<Width> dy = load<Width>(static_cast<const T*>(from.dy) + window);
        const Floats<Width> more = load_or<Width>(static_cast<const T*>(from.dy_more), window, 0);
        int won[Width];
        load_argmax<Width>(from.argmax + window, won);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] += won[k] == mine ? dy.at[k] + more.at[k] : 0.0F;
      }
    }
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      const float input = fmaf(scale.at[k], x.at[k], shift.at[k]);
      sum.at[k] *= rule.derivative(input, rule.value(input));
    }
    return sum;
  }
};

__device__ __forceinline__ Index rows_of(const PoolShape& shape) {
  return static_cast<Index>(shape.n) * shape.h * shape.w;
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) reduce_pooled_kernel(PooledReduce reduce) {
  await_previous();
  const PoolShape& shape = reduce.from.shape;
  Floats<Width> sums[2] = {};
  const int c = own_channel<Width>();
  if (c < shape.channels) {
    const PooledSource<T, Width> source(reduce.from, c);
    const Floats<Width> mean = load<Width>(reduce.mean + c);
    with_rule(reduce.from.activation, [&](auto rule) {
      for (Index row = first_row(); row < rows_of(shape); row += row_stride()) {
        const Floats<Width> x = load<Width>(static_cast<const T*>(reduce.from.x) + row * shape.channels + c);
        const Floats<Width> g = source.g(rule, row, x);
#pragma unroll
        for (int k = 0; k < Width; ++k) {
          sums[0].at[k] += g.at[k];
          sums[1].at[k] = fmaf(g.at[k], x.at[k] - mean.at[k], sums[1].at[k]);
        }
      }
    });
  }
  const int channels = static_cast<int>(shape.channels);
  write_partial<Width, 2>(sums, reduce.place, channels);
  add_over_grid<2>(reduce.place, static_cast<int>(blockDim.x) * Width, channels,
                   [&](int channel, double(&total)[2]) { end_sums<2>(reduce.end, channels, channel, total); });
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) apply_pooled_kernel(PooledApply apply) {
  await_previous();
  const PoolShape& shape = apply.from.shape;
  const int c = own_channel<Width>();
  if (c >= shape.channels) return;
  const PooledSource<T, Width> source(apply.from, c);
  const Floats<Width> a = load<Width>(apply.a + c), b = load<Width>(apply.b + c), d = load<Width>(apply.d + c);
  with_rule(apply.from.activation, [&](auto rule) {
    for (Index i = first_row(); i < rows_of(shape); i += row_stride()) {
      const Index row = from_the_end(i, rows_of(shape)), at = row * shape.channels + c;
      const Floats<Width> x = load<Width>(static_cast<const T*>(apply.from.x) + at);
      const Floats<Width> g = source.g(rule, row, x);
      Floats<Width> dx;
#pragma unroll
      for (int k = 0; k < Width; ++k) dx.at[k] = fmaf(a.at[k], g.at[k], fmaf(b.at[k], x.at[k], d.at[k]));
      store<Width>(static_cast<T*>(apply.dx) + at, dx);
    }
  });
}

Index rows_in(const PoolShape& shape) { return static_cast<Index>(shape.n) * shape.h * shape.w; }

}  // namespace

cudaError_t reduce_pooled(const PooledReduce& reduce, cudaStream_t stream) {
  const PoolShape& shape = reduce.from.shape;
  const Tiling tiling = tile_reduction(rows_in(shape), shape.channels);
  return with_elements(shape.storage, shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(reduce_pooled_kernel<T, w>, tiling.grid, tiling.block, partial_bytes<w, 2>(tiling), stream, reduce);
  });
}

cudaError_t apply_pooled(const PooledApply& apply, cudaStream_t stream) {
  const PoolShape& shape = apply.from.shape;
  const Tiling tiling = tile_elements(rows_in(shape), shape.channels);
  return with_elements(shape.storage, shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(apply_pooled_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, apply);
  });
}

}  // namespace convoy::cuda
