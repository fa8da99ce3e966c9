// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/adaptive_average_pool.hpp"

#include "backend/cuda/kernels/pool_windows.cuh"
#include "backend/rules/adaptive_window.hpp"

namespace convoy::cuda {
namespace {

__device__ __forceinline__ float share_of(const AdaptiveWindow& rows, const AdaptiveWindow& columns) {
  return 1.0F / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) adaptive_kernel(AdaptivePool pool, const T* x, T* y) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= pool.channels) return;
  const Index results = static_cast<Index>(pool.n) * pool.p * pool.q;
  for (Index row = first_row(); row < results; row += row_stride()) {
    const Pixel at(row, pool.p, pool.q);
    const AdaptiveWindow rows = adaptive_window(at.y, pool.p, pool.h), columns = adaptive_window(at.x, pool.q, pool.w);
    Floats<Width> sum = {};
    for (Index i = rows.begin; i < rows.end; ++i) {
      for (Index j = columns.begin; j < columns.end; ++j) {
        const Index from = (static_cast<Index>(at.image) * pool.h + i) * pool.w + j;
        const Floats<Width> v = load<Width>(x + from * pool.channels + c);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] += v.at[k];
      }
    }
    const float share = share_of(rows, columns);
#pragma unroll
    for (int k = 0; k < Width; ++k) sum.at[k] *= share;
    store<Width>(y + row * pool.channels + c, sum);
  }
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) adaptive_backward_kernel(AdaptivePool pool, const T* dy, T* dx) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= pool.channels) return;
  const Index pixels = static_cast<Index>(pool.n) * pool.h * pool.w;
  for (Index row = first_row(); row < pixels; row += row_stride()) {
    const Pixel at(row, pool.h, pool.w);
    const AdaptiveWindow down = adaptive_window(at.y, pool.h, pool.p), across = adaptive_window(at.x, pool.w, pool.q);
    Floats<Width> sum = {};
    for (Index p = down.begin; p < down.end; ++p) {
      const AdaptiveWindow rows = adaptive_window(p, pool.p, pool.h);
      for (Index q = across.begin; q < across.end; ++q) {
        const float share = share_of(rows, adaptive_window(q, pool.q, pool.w));
        const Index from = (static_cast<Index>(at.image) * pool.p + p) * pool.q + q;
        const Floats<Width> g = load<Width>(dy + from * pool.channels + c);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] = fmaf(share, g.at[k], sum.at[k]);
      }
    }
    store<Width>(dx + row * pool.channels + c, sum);
  }
}

}  // namespace

cudaError_t adaptive_pool(const AdaptivePool& pool, const void* x, void* y, cudaStream_t stream) {
  const Tiling tiling = tile_elements(static_cast<Index>(pool.n) * pool.p * pool.q, pool.channels);
  return with_elements(pool.storage, pool.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(adaptive_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, pool,
                  static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t adaptive_pool_backward(const AdaptivePool& pool, const void* dy, void* dx, cudaStream_t stream) {
  const Tiling tiling = tile_elements(static_cast<Index>(pool.n) * pool.h * pool.w, pool.channels);
  return with_elements(pool.storage, pool.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(adaptive_backward_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, pool,
                  static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace convoy::cuda
