// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/global_average_pool.hpp"

#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/division.cuh"

namespace convoy::cuda {
namespace {

/// A block an image and block's width of channels; rows of threads share out the pixels.
template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) global_kernel(GlobalPool pool, const T* x, T* y) {
  await_previous();
  DYNAMIC_SHARED(float, tile);
  const int across = static_cast<int>(blockDim.x) * Width, c = own_channel<Width>();
  const T* const image = x + static_cast<Index>(blockIdx.x) * pool.pixels * pool.channels;
  Floats<Width> sum = {};
  if (c < pool.channels) {
    for (Index pixel = threadIdx.y; pixel < pool.pixels; pixel += blockDim.y) {
      const Floats<Width> v = load<Width>(image + pixel * pool.channels + c);
#pragma unroll
      for (int k = 0; k < Width; ++k) sum.at[k] += v.at[k];
    }
  }
#pragma unroll
  for (int k = 0; k < Width; ++k)
    tile[static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x) * Width + k] = sum.at[k];
  __syncthreads();
  if (threadIdx.y != 0 || c >= pool.channels) return;
  const float factor = 1.0F / static_cast<float>(pool.pixels);
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    sum.at[k] = 0;
    for (int row = 0; row < static_cast<int>(blockDim.y); ++row)
      sum.at[k] += tile[row * across + static_cast<int>(threadIdx.x) * Width + k];
    sum.at[k] *= factor;
  }
  store<Width>(y + static_cast<Index>(blockIdx.x) * pool.channels + c, sum);
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) global_backward_kernel(GlobalPool pool, const T* dy, T* dx) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= pool.channels) return;
  const float factor = 1.0F / static_cast<float>(pool.pixels);
  for (Index row = first_row(); row < pool.n * pool.pixels; row += row_stride()) {
    Floats<Width> g = load<Width>(dy + divided(row, pool.pixels).quotient * pool.channels + c);
#pragma unroll
    for (int k = 0; k < Width; ++k) g.at[k] *= factor;
    store<Width>(dx + row * pool.channels + c, g);
  }
}

}  // namespace

cudaError_t global_pool(const GlobalPool& pool, const void* x, void* y, cudaStream_t stream) {
  const Tiling tiling = tile_elements(pool.pixels, pool.channels);
  const dim3 grid(static_cast<unsigned>(pool.n), tiling.grid.y, 1);
  return with_elements(pool.storage, pool.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(global_kernel<T, w>, grid, tiling.block, partial_bytes<w, 1>(tiling), stream, pool,
                  static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t global_pool_backward(const GlobalPool& pool, const void* dy, void* dx, cudaStream_t stream) {
  const Tiling tiling = tile_elements(pool.n * pool.pixels, pool.channels);
  return with_elements(pool.storage, pool.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(global_backward_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, pool,
                  static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace convoy::cuda
