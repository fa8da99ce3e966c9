// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/operations/norm_formulas.cuh"
#include "backend/cuda/operations/pointwise.hpp"

namespace convoy::cuda {
namespace {

/// What is added to the first term before the activation.
enum class Joined { nothing, tensor, norm };

constexpr int few_channels = 64;
/// Scale and shift of a block's channels.
struct BlockFactors {
  float scale[few_channels], shift[few_channels];
};

/// total: the sums of a channel that drowns, around its mean. All threads of the block call it.
template <class T>
__device__ __forceinline__ void sum_again(const NormFinish& finish, int c, double (&total)[2]) {
  __shared__ double tile[2][tile_threads];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const auto rows = static_cast<double>(finish.recount.rows);
  const auto anchor = static_cast<float>(total[0] / rows);
  const T* const at = static_cast<const T*>(finish.recount.x) + c;
  double sum = 0, square = 0;
  for (Index row = thread; row < finish.recount.rows; row += threads) {
    const auto distance = static_cast<double>(Element<T>::up(at[row * finish.channels]) - anchor);
    sum += distance;
    square += distance * distance;
  }
  __syncthreads();  // tile may still be read
  tile[0][thread] = sum;
  tile[1][thread] = square;
  __syncthreads();
  sum = square = 0;
  for (int i = 0; i < threads; ++i) {
    sum += tile[0][i];
    square += tile[1][i];
  }
  const auto around = static_cast<double>(anchor);
  total[0] = rows * around + sum;
  total[1] = square + around * (2 * sum + rows * around);
}

/// All threads of the block call it.
template <class T>
__device__ __forceinline__ void finish_in_block(const NormFinish& finish, int across, BlockFactors& factors) {
  __shared__ double totals[2][few_channels];
  __shared__ bool drowned[few_channels];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int first = static_cast<int>(blockIdx.y) * across, c = first + thread;
  const bool in_use = thread < across && c < finish.channels;
  __syncthreads();  // they may still be read
  if (thread < across) drowned[thread] = false;
  if (in_use) {
    double total[2] = {};
    for (Index part = 0; part < finish.sums.parts; ++part) {
      total[0] += static_cast<double>(finish.sums.at[0][part * finish.sums.stride + c]);
      total[1] += static_cast<double>(finish.sums.at[1][part * finish.sums.stride + c]);
    }
    totals[0][thread] = total[0];
    totals[1][thread] = total[1];
    if (finish.recount.x != nullptr)
      drowned[thread] = drowns<T>(total[0], total[1], static_cast<double>(finish.recount.rows));
  }
  __syncthreads();
  for (int i = 0; i < across; ++i) {
    if (!drowned[i]) continue;
    double total[2] = {totals[0][i], totals[1][i]};
    sum_again<T>(finish, first + i, total);
    if (thread != i) continue;
    totals[0][i] = total[0];
    totals[1][i] = total[1];
  }
  if (in_use) {
    const FinishedNorm norm = finish_channel(finish, c, totals[0][thread], totals[1][thread]);
    factors.scale[thread] = static_cast<float>(norm.scale);
    factors.shift[thread] = static_cast<float>(norm.shift);
    if (blockIdx.x == 0) write_norm<T>(finish, c, norm);
  }
  __syncthreads();
}

template <class T, int Width, Joined joined>
struct Passes {
  const Apply& apply;
  Floats<Width> scale, shift, scale2, shift2;

  __device__ __forceinline__ void take(const BlockFactors& factors, Floats<Width>& to_scale, Floats<Width>& to_shift) {
    const int at = static_cast<int>(threadIdx.x) * Width;
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      to_scale.at[k] = factors.scale[at + k];
      to_shift.at[k] = factors.shift[at + k];
    }
  }

  __device__ __forceinline__ Passes(const Apply& args, int c)
      : apply(args),
        scale(load_or<Width>(args.scale, c, 1)),
        shift(load_or<Width>(args.shift, c, 0)),
        scale2(load_or<Width>(joined == Joined::norm ? args.scale2 : nullptr, c, 1)),
        shift2(load_or<Width>(joined == Joined::norm ? args.shift2 : nullptr, c, 0)) {}

  template <class Rule>
  __device__ __forceinline__ void finish(const Rule& rule, Index at, const Floats<Width>& x,
                                         const Floats<Width>& other) const {
    Floats<Width> z;
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      float y = fmaf(scale.at[k], x.at[k], shift.at[k]);
      if constexpr (joined == Joined::tensor) y += other.at[k];
      if constexpr (joined == Joined::norm) y += fmaf(scale2.at[k], other.at[k], shift2.at[k]);
      z.at[k] = rule.value(y);
    }
    store<Width>(static_cast<T*>(apply.z) + at, z);
    if constexpr (Width == pack_width) {
      if (apply.mask == nullptr) return;
      unsigned bits = 0;
#pragma unroll
      for (int k = 0; k < Width; ++k) bits |= (z.at[k] > 0 ? 1U : 0U) << k;
      apply.mask[at / Width] = static_cast<std::uint8_t>(bits);
    }
  }

  __device__ __forceinline__ Floats<Width> x(Index at) const {
    return load<Width>(static_cast<const T*>(apply.x) + at);
  }
  __device__ __forceinline__ Floats<Width> other(Index at) const {
    return load_or<Width>(joined == Joined::nothing ? nullptr : static_cast<const T*>(apply.other), at, 0);
  }
};

/// One element per thread takes so few registers that the compiler aims at 32 of them, and would spill. With a bound on
/// the blocks it takes what it needs.
template <class T, int Width, Joined joined, bool finishes>
__global__ void __launch_bounds__(tile_threads, Width == 1 ? 1 : 0) apply_kernel(Apply apply) {
  await_previous();
  const int c = own_channel<Width>();
  [[maybe_unused]] const int across = static_cast<int>(blockDim.x) * Width;
  const bool in_use = c < apply.channels;
  Passes<T, Width, joined> passes(apply, in_use ? c : 0);
  if constexpr (finishes) {
    __shared__ BlockFactors factors;
    if (apply.finish.channels > 0) {
      finish_in_block<T>(apply.finish, across, factors);
      if (in_use) passes.take(factors, passes.scale, passes.shift);
    }
    if (joined == Joined::norm && apply.finish2.channels > 0) {
      finish_in_block<T>(apply.finish2, across, factors);
      if (in_use) passes.take(factors, passes.scale2, passes.shift2);
    }
  }
  if (!in_use) return;
  const Index step = row_stride();
  with_rule(apply.activation, [&](auto rule) {
    Index row = first_row();
    if constexpr (Width == pack_width) {  // two rows at a time: both are read before either is written
      for (; row + step < apply.rows; row += 2 * step) {
        const Index at = from_the_end(row, apply.rows) * apply.channels + c, next = at - step * apply.channels;
        const Floats<Width> x = passes.x(at), other = passes.other(at);
        const Floats<Width> x2 = passes.x(next), other2 = passes.other(next);
        passes.finish(rule, at, x, other);
        passes.finish(rule, next, x2, other2);
      }
    }
    for (; row < apply.rows; row += step) {
      const Index at = from_the_end(row, apply.rows) * apply.channels + c;
      passes.finish(rule, at, passes.x(at), passes.other(at));
    }
  });
}

template <class T, int Width, bool finishes>
auto kernel_for(const Apply& apply) {
  if (apply.other == nullptr) return apply_kernel<T, Width, Joined::nothing, finishes>;
  const bool norm = apply.scale2 != nullptr || apply.finish2.channels > 0;
  return norm ? apply_kernel<T, Width, Joined::norm, finishes> : apply_kernel<T, Width, Joined::tensor, finishes>;
}

}  // namespace

cudaError_t apply(const Apply& apply, cudaStream_t stream) {
  if (apply.rows <= 0) return cudaSuccess;
  const bool finishes = apply.finish.channels > 0 || apply.finish2.channels > 0;
  const Tiling tiling =
      finishes ? tile_few_channels(apply.rows, apply.channels) : tile_elements(apply.rows, apply.channels);
  return with_elements(apply.storage, apply.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(finishes ? kernel_for<T, w, true>(apply) : kernel_for<T, w, false>(apply), tiling.grid, tiling.block,
                  0, stream, apply);
  });
}

}  // namespace convoy::cuda
