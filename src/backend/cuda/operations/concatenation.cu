// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/concatenation.hpp"

#include "backend/cuda/kernels/columns.cuh"

namespace convoy::cuda {
namespace {

enum class Direction { join, split };

/// The grid's third direction goes over the parts.
template <class T, int Width, Direction direction>
__global__ void __launch_bounds__(tile_threads) parts_kernel(ChannelParts parts) {
  await_previous();
  const ChannelParts::Part& part = parts.parts[blockIdx.z];
  const int c = own_channel<Width>();
  if (part.tensor == nullptr || c >= part.channels) return;
  T* const own = static_cast<T*>(part.tensor) + c;
  T* const whole = static_cast<T*>(parts.whole) + part.begin + c;
  for (Index row = first_row(); row < parts.rows; row += row_stride()) {
    T* const mine = own + row * part.channels;
    T* const shared = whole + row * parts.channels;
    if constexpr (direction == Direction::join) {
      store<Width>(shared, load<Width>(mine));
    } else {
      store<Width>(mine, load<Width>(shared));
    }
  }
}

template <Direction direction>
cudaError_t launch_parts(const ChannelParts& parts, cudaStream_t stream) {
  Index widest = 1;
  bool packed = true;
  for (int i = 0; i < parts.count; ++i) {
    widest = std::max(widest, parts.parts[i].channels);
    packed = packed && parts.parts[i].channels % pack_width == 0;
  }
  if (!packed) widest |= 1;  // tilings are of packs where channels are a multiple of 8
  Tiling tiling = tile_elements(parts.rows, widest);
  tiling.grid.z = static_cast<unsigned>(parts.count);
  return with_elements(parts.storage, widest, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(parts_kernel<T, decltype(width)::value, direction>, tiling.grid, tiling.block, 0, stream, parts);
  });
}

}  // namespace

cudaError_t join_channels(const ChannelParts& parts, cudaStream_t stream) {
  return launch_parts<Direction::join>(parts, stream);
}

cudaError_t split_channels(const ChannelParts& parts, cudaStream_t stream) {
  return launch_parts<Direction::split>(parts, stream);
}

}  // namespace convoy::cuda
