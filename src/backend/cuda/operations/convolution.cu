// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/convolution.hpp"

#include "backend/cuda/kernels/columns.cuh"

namespace convoy::cuda {
namespace {

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) column_kernel(BiasGradient bias) {
  await_previous();
  Floats<Width> sums[1] = {};
  const int c = own_channel<Width>(), channels = static_cast<int>(bias.stored_columns);
  if (c < channels) {
    for (Index row = first_row(); row < bias.rows; row += row_stride()) {
      const Floats<Width> v = load<Width>(static_cast<const T*>(bias.dy) + row * channels + c);
#pragma unroll
      for (int k = 0; k < Width; ++k) sums[0].at[k] += v.at[k];
    }
  }
  write_partial<Width, 1>(sums, bias.place, channels);
  add_over_grid<1>(bias.place, static_cast<int>(blockDim.x) * Width, channels, [&](int channel, double(&total)[1]) {
    if (channel >= bias.columns) return;
    const double scale = bias.loss_scale != nullptr ? static_cast<double>(*bias.loss_scale) : 1;
    bias.db[channel] = static_cast<float>(total[0] / scale);
  });
}

}  // namespace

cudaError_t bias_gradient(const BiasGradient& gradient, cudaStream_t stream) {
  const Tiling tiling = tile_reduction(gradient.rows, gradient.stored_columns);
  return with_elements(gradient.storage, gradient.stored_columns, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(column_kernel<T, w>, tiling.grid, tiling.block, partial_bytes<w, 1>(tiling), stream, gradient);
  });
}

}  // namespace convoy::cuda
