// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/operations/pointwise.hpp"

namespace convoy::cuda {
namespace {

/// What is added to the first term before the activation.
enum class Joined { nothing, tensor, norm };

template <class T, int Width, Joined joined>
struct Passes {
  const Apply& apply;
  Floats<Width> scale, shift, scale2, shift2;

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

/// One element a thread takes so few registers that the compiler aims at 32 of them, and would spill. With a bound on the
/// blocks it takes what it needs.
template <class T, int Width, Joined joined>
__global__ void __launch_bounds__(tile_threads, Width == 1 ? 1 : 0) apply_kernel(Apply apply) {
  const int c = own_channel<Width>();
  if (c >= apply.channels) return;
  const Passes<T, Width, joined> passes(apply, c);
  const Index step = row_stride();
  with_rule(apply.activation, [&](auto rule) {
    Index row = first_row();
    if constexpr (Width == pack_width) {  // two rows at a time: both are read before either is written
      for (; row + step < apply.rows; row += 2 * step) {
        const Index at = row * apply.channels + c, next = at + step * apply.channels;
        const Floats<Width> x = passes.x(at), other = passes.other(at);
        const Floats<Width> x2 = passes.x(next), other2 = passes.other(next);
        passes.finish(rule, at, x, other);
        passes.finish(rule, next, x2, other2);
      }
    }
    for (; row < apply.rows; row += step) {
      const Index at = row * apply.channels + c;
      passes.finish(rule, at, passes.x(at), passes.other(at));
    }
  });
}

template <class T, int Width>
auto kernel_for(const Apply& apply) {
  if (apply.other == nullptr) return apply_kernel<T, Width, Joined::nothing>;
  return apply.scale2 == nullptr ? apply_kernel<T, Width, Joined::tensor> : apply_kernel<T, Width, Joined::norm>;
}

}  // namespace

cudaError_t apply(const Apply& apply, cudaStream_t stream) {
  if (apply.rows <= 0) return cudaSuccess;
  const Tiling tiling = tile_elements(apply.rows, apply.channels);
  return with_elements(apply.storage, apply.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(kernel_for<T, decltype(width)::value>(apply), tiling.grid, tiling.block, 0, stream, apply);
  });
}

}  // namespace convoy::cuda
