// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/pool.hpp"

#include "backend/cuda/kernels/pool_windows.cuh"

namespace convoy::cuda {
namespace {

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) max_kernel(MaxPool pool) {
  await_previous();
  const PoolShape& shape = pool.shape;
  const int c = own_channel<Width>();
  if (c >= shape.channels) return;
  const Index rows = static_cast<Index>(shape.n) * shape.p * shape.q;
  const Floats<Width> scale = load_or<Width>(pool.scale, c, 1), shift = load_or<Width>(pool.shift, c, 0);
  with_rule(pool.activation, [&](auto rule) {
    for (Index row = first_row(); row < rows; row += row_stride()) {
      const Pixel at(row, shape.p, shape.q);
      Floats<Width> best;
      int argmax[Width];
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        best.at[k] = 0;
        argmax[k] = -1;
      }
      for (int r = 0; r < shape.kernel; ++r) {
        const int y = at.y * shape.stride - shape.pad + r;
        if (y < 0 || y >= shape.h) continue;
        for (int s = 0; s < shape.kernel; ++s) {
          const int x = at.x * shape.stride - shape.pad + s;
          if (x < 0 || x >= shape.w) continue;
          const Index from = (static_cast<Index>(at.image) * shape.h + y) * shape.w + x;
          const Floats<Width> v = load<Width>(static_cast<const T*>(pool.x) + from * shape.channels + c);
#pragma unroll
          for (int k = 0; k < Width; ++k) {
            const float z = rule.value(fmaf(scale.at[k], v.at[k], shift.at[k]));
            if (argmax[k] >= 0 && !(z > best.at[k]) && z == z) continue;  // NaN wins
            best.at[k] = z;
            argmax[k] = r * shape.kernel + s;
          }
        }
      }
      store<Width>(static_cast<T*>(pool.y) + row * shape.channels + c, best);
      if (pool.argmax != nullptr) store_argmax<Width>(pool.argmax + row * shape.channels + c, argmax);
    }
  });
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads)
    max_backward_kernel(PoolShape shape, const T* dy, const std::uint8_t* argmax, T* dx) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= shape.channels) return;
  const Index rows = static_cast<Index>(shape.n) * shape.h * shape.w;
  for (Index row = first_row(); row < rows; row += row_stride()) {
    const Pixel at(row, shape.h, shape.w);
    const Windows down(at.y, shape, shape.p), across(at.x, shape, shape.q);
    Floats<Width> sum = {};
    for (int p = down.begin; p < down.end; ++p) {
      for (int q = across.begin; q < across.end; ++q) {
        const int mine = (at.y + shape.pad - p * shape.stride) * shape.kernel + at.x + shape.pad - q * shape.stride;
        const Index from = ((static_cast<Index>(at.image) * shape.p + p) * shape.q + q) * shape.channels + c;
        const Floats<Width> g = load<Width>(dy + from);
        int won[Width];
        load_argmax<Width>(argmax + from, won);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] += won[k] == mine ? g.at[k] : 0.0F;
      }
    }
    store<Width>(dx + row * shape.channels + c, sum);
  }
}

/// Elements that an average divides by.
__device__ __forceinline__ int window_count(const PoolShape& shape, int p, int q) {
  if (shape.count_padding) return shape.kernel * shape.kernel;
  const int top = max(p * shape.stride - shape.pad, 0), left = max(q * shape.stride - shape.pad, 0);
  const int bottom = min(p * shape.stride - shape.pad + shape.kernel, shape.h);
  const int right = min(q * shape.stride - shape.pad + shape.kernel, shape.w);
  return (bottom - top) * (right - left);
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) average_kernel(PoolShape shape, const T* x, T* y) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= shape.channels) return;
  const Index rows = static_cast<Index>(shape.n) * shape.p * shape.q;
  for (Index row = first_row(); row < rows; row += row_stride()) {
    const Pixel at(row, shape.p, shape.q);
    Floats<Width> sum = {};
    for (int r = max(0, shape.pad - at.y * shape.stride); r < shape.kernel; ++r) {
      const int h = at.y * shape.stride - shape.pad + r;
      if (h >= shape.h) break;
      for (int s = max(0, shape.pad - at.x * shape.stride); s < shape.kernel; ++s) {
        const int w = at.x * shape.stride - shape.pad + s;
        if (w >= shape.w) break;
        const Index from = (static_cast<Index>(at.image) * shape.h + h) * shape.w + w;
        const Floats<Width> v = load<Width>(x + from * shape.channels + c);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] += v.at[k];
      }
    }
    const float factor = 1.0F / static_cast<float>(window_count(shape, at.y, at.x));
#pragma unroll
    for (int k = 0; k < Width; ++k) sum.at[k] *= factor;
    store<Width>(y + row * shape.channels + c, sum);
  }
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads) average_backward_kernel(PoolShape shape, const T* dy, T* dx) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= shape.channels) return;
  const Index rows = static_cast<Index>(shape.n) * shape.h * shape.w;
  for (Index row = first_row(); row < rows; row += row_stride()) {
    const Pixel at(row, shape.h, shape.w);
    const Windows down(at.y, shape, shape.p), across(at.x, shape, shape.q);
    Floats<Width> sum = {};
    for (int p = down.begin; p < down.end; ++p) {
      for (int q = across.begin; q < across.end; ++q) {
        const float factor = 1.0F / static_cast<float>(window_count(shape, p, q));
        const Index from = ((static_cast<Index>(at.image) * shape.p + p) * shape.q + q) * shape.channels + c;
        const Floats<Width> g = load<Width>(dy + from);
#pragma unroll
        for (int k = 0; k < Width; ++k) sum.at[k] = fmaf(factor, g.at[k], sum.at[k]);
      }
    }
    store<Width>(dx + row * shape.channels + c, sum);
  }
}

Index outputs(const PoolShape& shape) { return static_cast<Index>(shape.n) * shape.p * shape.q; }
Index inputs(const PoolShape& shape) { return static_cast<Index>(shape.n) * shape.h * shape.w; }

}  // namespace

cudaError_t max_pool(const MaxPool& pool, cudaStream_t stream) {
  const Tiling tiling = tile_elements(outputs(pool.shape), pool.shape.channels);
  return with_elements(pool.shape.storage, pool.shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(max_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, pool);
  });
}

cudaError_t max_pool_backward(const PoolShape& shape, const void* dy, const std::uint8_t* argmax, void* dx,
                              cudaStream_t stream) {
  const Tiling tiling = tile_elements(inputs(shape), shape.channels);
  return with_elements(shape.storage, shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(max_backward_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, shape,
                  static_cast<const T*>(dy), argmax, static_cast<T*>(dx));
  });
}

cudaError_t average_pool(const PoolShape& shape, const void* x, void* y, cudaStream_t stream) {
  const Tiling tiling = tile_elements(outputs(shape), shape.channels);
  return with_elements(shape.storage, shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(average_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, shape,
                  static_cast<const T*>(x), static_cast<T*>(y));
  });
}

cudaError_t average_pool_backward(const PoolShape& shape, const void* dy, void* dx, cudaStream_t stream) {
  const Tiling tiling = tile_elements(inputs(shape), shape.channels);
  return with_elements(shape.storage, shape.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(average_backward_kernel<T, decltype(width)::value>, tiling.grid, tiling.block, 0, stream, shape,
                  static_cast<const T*>(dy), static_cast<T*>(dx));
  });
}

}  // namespace convoy::cuda
