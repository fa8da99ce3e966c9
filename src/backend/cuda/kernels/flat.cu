// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/flat.hpp"

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/tiling.hpp"
#include "backend/rules/moving_average.hpp"

namespace convoy::cuda {
namespace {

constexpr int threads = 256;

/// Blocks that keep every card busy; each thread takes packs of four in strides.
dim3 flat_grid(Index n) {
  const Index blocks = (n + 4 * threads - 1) / (4 * threads);
  return {static_cast<unsigned>(blocks < 1 ? 1 : blocks > 2048 ? 2048 : blocks), 1, 1};
}
bool on_16_bytes(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }
bool on_8_bytes(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 8 == 0; }

__device__ __forceinline__ Index first_index() { return static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ Index index_stride() { return static_cast<Index>(gridDim.x) * blockDim.x; }

struct Scale {
  float factor;
  __device__ float operator()(float, float from) const { return factor * from; }
};
struct Plus {
  __device__ float operator()(float to, float from) const { return to + from; }
};
struct Constant {
  float value;
  __device__ float operator()(float, float) const { return value; }
};
struct Blend {
  const StepNumbers* step;
  __device__ float operator()(float to, float from) const { return blend(to, from, step->ema_decay); }
};

struct RoundTo {
  Wire wire;
  __device__ float operator()(float to, float) const { return widened(narrowed(to, wire), wire); }
};

/// to[i] = formula(to[i], from[i]); from and to are read only where the formula wants them.
template <class Formula, bool reads_to, bool reads_from>
__global__ void __launch_bounds__(threads)
    flat_kernel(float* to, const float* from, Index packs, Index n, Formula formula) {
  await_previous();
  for (Index i = first_index(); i < packs; i += index_stride()) {
    float4 a = make_float4(0, 0, 0, 0), b = a;
    if constexpr (reads_to) a = reinterpret_cast<const float4*>(to)[i];
    if constexpr (reads_from) b = reinterpret_cast<const float4*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(formula(a.x, b.x), formula(a.y, b.y), formula(a.z, b.z), formula(a.w, b.w));
  }
  for (Index i = 4 * packs + first_index(); i < n; i += index_stride())
    to[i] = formula(reads_to ? to[i] : 0.0F, reads_from ? from[i] : 0.0F);
}

template <bool reads_to, bool reads_from, class Formula>
cudaError_t run(float* to, const float* from, Index n, const Formula& formula, cudaStream_t stream) {
  if (n <= 0) return cudaSuccess;
  const Index packs = on_16_bytes(to) && on_16_bytes(from) ? n / 4 : 0;
  return launch(flat_kernel<Formula, reads_to, reads_from>, flat_grid(n), threads, 0, stream, to, from, packs, n,
                formula);
}

__global__ void __launch_bounds__(threads)
    narrow_kernel(std::uint16_t* to, const float* from, Index packs, Index n, Wire wire) {
  await_previous();
  for (Index i = first_index(); i < packs; i += index_stride()) {
    const float4 v = reinterpret_cast<const float4*>(from)[i];
    const std::uint32_t low = narrowed(v.x, wire) | static_cast<std::uint32_t>(narrowed(v.y, wire)) << 16;
    const std::uint32_t high = narrowed(v.z, wire) | static_cast<std::uint32_t>(narrowed(v.w, wire)) << 16;
    reinterpret_cast<uint2*>(to)[i] = make_uint2(low, high);
  }
  for (Index i = 4 * packs + first_index(); i < n; i += index_stride()) to[i] = narrowed(from[i], wire);
}

__device__ __forceinline__ float low_half(std::uint32_t pair, Wire wire) {
  return widened(static_cast<std::uint16_t>(pair & 0xffffU), wire);
}
__device__ __forceinline__ float high_half(std::uint32_t pair, Wire wire) {
  return widened(static_cast<std::uint16_t>(pair >> 16), wire);
}

__global__ void __launch_bounds__(threads)
    widen_kernel(float* to, const std::uint16_t* from, Index packs, Index n, Wire wire) {
  await_previous();
  for (Index i = first_index(); i < packs; i += index_stride()) {
    const uint2 v = reinterpret_cast<const uint2*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(low_half(v.x, wire), high_half(v.x, wire), low_half(v.y, wire), high_half(v.y, wire));
  }
  for (Index i = 4 * packs + first_index(); i < n; i += index_stride()) to[i] = widened(from[i], wire);
}

__global__ void __launch_bounds__(threads) clear_kernel(float* block, const FloatRange* ranges) {
  await_previous();
  const FloatRange range = ranges[blockIdx.y];
  for (Index i = first_index(); i < range.count; i += index_stride()) block[range.begin + i] = 0;
}

__global__ void __launch_bounds__(threads) deliver_kernel(Delivery delivery) {
  await_previous();
  const Delivery::Part part = blockIdx.y == 0 ? delivery.parts[0] : delivery.parts[1];
  const Index packs = part.bytes / 16;
  for (Index i = first_index(); i < packs; i += index_stride())
    static_cast<uint4*>(part.to)[i] = static_cast<const uint4*>(part.from)[i];
  for (Index i = 4 * packs + first_index(); i < part.bytes / 4; i += index_stride())
    static_cast<std::uint32_t*>(part.to)[i] = static_cast<const std::uint32_t*>(part.from)[i];
}

}  // namespace

cudaError_t copy_floats(float* to, const float* from, Index n, float factor, cudaStream_t stream) {
  return run<false, true>(to, from, n, Scale{factor}, stream);
}
cudaError_t add_floats(float* to, const float* from, Index n, cudaStream_t stream) {
  return run<true, true>(to, from, n, Plus{}, stream);
}
cudaError_t fill_floats(float* to, Index n, float value, cudaStream_t stream) {
  return run<false, false>(to, nullptr, n, Constant{value}, stream);
}
cudaError_t round_floats(float* values, Index n, Wire wire, cudaStream_t stream) {
  return run<true, false>(values, nullptr, n, RoundTo{wire}, stream);
}
cudaError_t narrow_floats(std::uint16_t* to, const float* from, Index n, Wire wire, cudaStream_t stream) {
  if (n <= 0) return cudaSuccess;
  const Index packs = on_8_bytes(to) && on_16_bytes(from) ? n / 4 : 0;
  return launch(narrow_kernel, flat_grid(n), threads, 0, stream, to, from, packs, n, wire);
}
cudaError_t widen_floats(float* to, const std::uint16_t* from, Index n, Wire wire, cudaStream_t stream) {
  if (n <= 0) return cudaSuccess;
  const Index packs = on_16_bytes(to) && on_8_bytes(from) ? n / 4 : 0;
  return launch(widen_kernel, flat_grid(n), threads, 0, stream, to, from, packs, n, wire);
}
cudaError_t blend_floats(float* to, const float* from, Index n, const StepNumbers* step, cudaStream_t stream) {
  return run<true, true>(to, from, n, Blend{step}, stream);
}

cudaError_t clear_ranges(float* block, const FloatRange* ranges, int count, Index longest, cudaStream_t stream) {
  if (count <= 0 || longest <= 0) return cudaSuccess;
  return launch(clear_kernel, dim3(flat_grid(longest).x, static_cast<unsigned>(count)), threads, 0, stream, block,
                ranges);
}

cudaError_t deliver(const Delivery& delivery, cudaStream_t stream) {
  if (delivery.parts[0].bytes <= 0) return cudaSuccess;
  const Index longest = std::max(delivery.parts[0].bytes, delivery.parts[1].bytes);
  const unsigned count = delivery.parts[1].bytes > 0 ? 2 : 1;
  return launch(deliver_kernel, dim3(flat_grid(longest / 4).x, count), threads, 0, stream, delivery);
}

}  // namespace convoy::cuda
