// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/convolution.hpp"

#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/parts.cuh"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) column_kernel(const T* dy, float* partial, Index rows, int channels) {
  Floats<Width> sums[1] = {};
  const int c = own_channel<Width>();
  if (c < channels) {
    for (Index row = first_row(); row < rows; row += row_stride()) {
      const Floats<Width> v = load<Width>(dy + row * channels + c);
#pragma unroll
      for (int k = 0; k < Width; ++k) sums[0].at[k] += v.at[k];
    }
  }
  write_partial<Width, 1>(sums, partial, channels);
}

__global__ void __launch_bounds__(finish_threads)
    bias_kernel(PartialSums sums, Index columns, const float* loss_scale, float* db) {
  const int c = finish_channel();
  const bool in_use = c < columns;
  double total[1];
  add_parts<1>(sums, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
  db[c] = static_cast<float>(loss_scale != nullptr ? total[0] / static_cast<double>(*loss_scale) : total[0]);
}

constexpr int filter_tile = 4096;

/// Channels that one block turns: of one k, all rs, through shared memory so that both sides are read in lines.
template <class T>
__global__ void __launch_bounds__(threads) filter_kernel(FilterGradient gradient, int chunk) {
  DYNAMIC_SHARED(float, tile);
  const int rs = static_cast<int>(gradient.rs), first = static_cast<int>(blockIdx.y) * chunk;
  const int channels = min(chunk, static_cast<int>(gradient.c) - first);
  const Index k = blockIdx.x;
  const T* from = static_cast<const T*>(gradient.from) + k * rs * gradient.stored_c + first;
  float* to = gradient.to + (k * gradient.c + first) * rs;
  const float unscale = gradient.loss_scale != nullptr ? 1 / *gradient.loss_scale : 1;
  for (int i = static_cast<int>(threadIdx.x); i < channels * rs; i += threads) {
    const int s = i / channels, c = i % channels;
    tile[c * rs + s] = Element<T>::up(from[s * gradient.stored_c + c]) * unscale;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < channels * rs; i += threads) to[i] = tile[i];
}

}  // namespace

cudaError_t bias_gradient(const BiasGradient& gradient, cudaStream_t stream) {
  const Tiling tiling = tile_reduction(gradient.rows, gradient.stored_columns);
  const cudaError_t error = with_elements(gradient.storage, gradient.stored_columns, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(column_kernel<T, w>, tiling.grid, tiling.block, partial_bytes<w, 1>(tiling), stream,
                  static_cast<const T*>(gradient.dy), gradient.partial, gradient.rows,
                  static_cast<int>(gradient.stored_columns));
  });
  if (error != cudaSuccess) return error;
  return launch(bias_kernel, finish_grid(gradient.columns), finish_block(), 0, stream,
                PartialSums::of_reduce(gradient.partial, tiling.grid.x, 1, gradient.stored_columns), gradient.columns,
                gradient.loss_scale, gradient.db);
}

cudaError_t filter_gradient(const FilterGradient& gradient, cudaStream_t stream) {
  const Index chunk = std::clamp<Index>(filter_tile / gradient.rs, 1, gradient.c);
  const dim3 grid(static_cast<unsigned>(gradient.k), static_cast<unsigned>((gradient.c + chunk - 1) / chunk), 1);
  return with_storage(gradient.storage, [&](auto tag) {
    return launch(filter_kernel<typename decltype(tag)::type>, grid, threads,
                  static_cast<std::size_t>(chunk * gradient.rs) * sizeof(float), stream, gradient,
                  static_cast<int>(chunk));
  });
}

}  // namespace convoy::cuda
