// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/channel_gate.hpp"

#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/division.cuh"
#include "backend/rules/gate.hpp"

namespace convoy::cuda {
namespace {

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) gate_kernel(GatePass pass, const T* x, const T* s, T* y) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= pass.channels) return;
  for (Index row = first_row(); row < pass.n * pass.pixels; row += row_stride()) {
    Floats<Width> v = load<Width>(x + row * pass.channels + c);
    const Floats<Width> gate = load<Width>(s + divided(row, pass.pixels).quotient * pass.channels + c);
#pragma unroll
    for (int k = 0; k < Width; ++k) v.at[k] *= gate_value<FloatMath>(pass.gate, gate.at[k]);
    store<Width>(y + row * pass.channels + c, v);
  }
}

/// A block an image and block's width of channels; rows of threads share out the pixels.
template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) gate_backward_kernel(GatePass pass, GateGradients tensors) {
  await_previous();
  DYNAMIC_SHARED(float, tile);
  const int across = static_cast<int>(blockDim.x) * Width, c = own_channel<Width>();
  const Index image = static_cast<Index>(blockIdx.x) * pass.pixels * pass.channels;
  const Index of_s = static_cast<Index>(blockIdx.x) * pass.channels + c;
  Floats<Width> sum = {}, s = {};
  if (c < pass.channels) {
    s = load<Width>(static_cast<const T*>(tensors.s) + of_s);
    for (Index pixel = threadIdx.y; pixel < pass.pixels; pixel += blockDim.y) {
      const Index at = image + pixel * pass.channels + c;
      Floats<Width> dy = load<Width>(static_cast<const T*>(tensors.dy) + at);
      const Floats<Width> x = load<Width>(static_cast<const T*>(tensors.x) + at);
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        sum.at[k] += dy.at[k] * x.at[k];
        dy.at[k] *= gate_value<FloatMath>(pass.gate, s.at[k]);
      }
      if (tensors.dx != nullptr) store<Width>(static_cast<T*>(tensors.dx) + at, dy);
    }
  }
#pragma unroll
  for (int k = 0; k < Width; ++k)
    tile[static_cast<int>(threadIdx.y) * across + static_cast<int>(threadIdx.x) * Width + k] = sum.at[k];
  __syncthreads();
  if (threadIdx.y != 0 || c >= pass.channels || tensors.ds == nullptr) return;
#pragma unroll
  for (int k = 0; k < Width; ++k) {
    sum.at[k] = 0;
    for (int row = 0; row < static_cast<int>(blockDim.y); ++row)
      sum.at[k] += tile[row * across + static_cast<int>(threadIdx.x) * Width + k];
    sum.at[k] *= gate_slope<FloatMath>(pass.gate, s.at[k]);
  }
  store<Width>(static_cast<T*>(tensors.ds) + of_s, sum);
}

}  // namespace

cudaError_t gate_channels(const GatePass& pass, const void* x, const void* s, void* y, cudaStream_t stream) {
  const Tiling tiling = tile_elements(pass.n * pass.pixels, pass.channels);
  return with_elements(pass.storage, pass.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(gate_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, pass,
                  static_cast<const T*>(x), static_cast<const T*>(s), static_cast<T*>(y));
  });
}

cudaError_t gate_channels_backward(const GatePass& pass, const GateGradients& tensors, cudaStream_t stream) {
  const Tiling tiling = tile_elements(pass.pixels, pass.channels);
  const dim3 grid(static_cast<unsigned>(pass.n), tiling.grid.y, 1);
  return with_elements(pass.storage, pass.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(gate_backward_kernel<T, w>, grid, tiling.block, partial_bytes<w, 1>(tiling), stream, pass, tensors);
  });
}

}  // namespace convoy::cuda
