// SPDX-License-Identifier: Apache-2.0
// Pixels, the windows over them, and where the maxima of max pooling lie in memory.
#pragma once
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/division.cuh"
#include "backend/cuda/operations/pool.hpp"

namespace convoy::cuda {

/// A pixel of n h w by its number.
struct Pixel {
  int image, y, x;
  __device__ __forceinline__ Pixel(Index row, int height, int width) {
    const Divided line = divided(row, width), plane = divided(line.quotient, height);
    image = static_cast<int>(plane.quotient);
    y = static_cast<int>(plane.rest);
    x = static_cast<int>(line.rest);
  }
};

/// Windows [begin, end) along one axis that hold a position: p * stride - pad <= position < p * stride - pad + kernel.
struct Windows {
  int begin, end;
  __device__ __forceinline__ Windows(int position, const PoolShape& shape, int count) {
    const int last = position + shape.pad, first = last - shape.kernel;
    begin = first < 0 ? 0 : first / shape.stride + 1;
    end = min(last / shape.stride + 1, count);
  }
};

template <int Width>
__device__ __forceinline__ void store_argmax(std::uint8_t* to, const int (&argmax)[Width]) {
  if constexpr (Width == pack_width) {
    uint2 bytes = make_uint2(0, 0);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      bytes.x |= static_cast<unsigned>(argmax[k]) << 8 * k;
      bytes.y |= static_cast<unsigned>(argmax[k + 4]) << 8 * k;
    }
    *reinterpret_cast<uint2*>(to) = bytes;
  } else {
    *to = static_cast<std::uint8_t>(argmax[0]);
  }
}

template <int Width>
__device__ __forceinline__ void load_argmax(const std::uint8_t* from, int (&argmax)[Width]) {
  if constexpr (Width == pack_width) {
    const uint2 bytes = *reinterpret_cast<const uint2*>(from);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      argmax[k] = static_cast<int>(bytes.x >> 8 * k & 255U);
      argmax[k + 4] = static_cast<int>(bytes.y >> 8 * k & 255U);
    }
  } else {
    argmax[0] = *from;
  }
}

}  // namespace convoy::cuda
