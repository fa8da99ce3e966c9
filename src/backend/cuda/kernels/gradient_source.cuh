// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/norm.hpp"

namespace convoy::cuda {

/// Where the output that the curve's derivative needs comes from: memory (or nowhere: no curve), or it is computed
/// again.
enum class Output { stored, again };

/// Gradients behind the curve, one row's channels at a time; what belongs to the thread's channels stays in registers.
template <class T, int Width, Output output>
struct GradientSource {
  const MaskedGradient& from;
  Floats<Width> scale, shift, scale2, shift2;

  __device__ __forceinline__ GradientSource(const MaskedGradient& source, int c)
      : from(source),
        scale(load_or<Width>(output == Output::again ? source.scale : nullptr, c, 1)),
        shift(load_or<Width>(output == Output::again ? source.shift : nullptr, c, 0)),
        scale2(load_or<Width>(output == Output::again ? source.scale2 : nullptr, c, 1)),
        shift2(load_or<Width>(output == Output::again ? source.shift2 : nullptr, c, 0)) {}

  /// x and other are the row's, where the output is computed again; `joined`: whether there is an other.
  template <class Formula>
  __device__ __forceinline__ Floats<Width> g(const Formula& formula, Index at, const Floats<Width>& x,
                                             const Floats<Width>& other, bool joined) const {
    Floats<Width> g = load<Width>(static_cast<const T*>(from.dz) + at);
    if (from.dz_more != nullptr) {
      const Floats<Width> more = load<Width>(static_cast<const T*>(from.dz_more) + at);
#pragma unroll
      for (int k = 0; k < Width; ++k) g.at[k] += more.at[k];
    }
    const Floats<Width> z = outputs(formula, at, x, other, joined);
#pragma unroll
    for (int k = 0; k < Width; ++k) g.at[k] *= formula.derivative(z.at[k]);
    return g;
  }

 private:
  template <class Formula>
  __device__ __forceinline__ Floats<Width> outputs(const Formula& formula, Index at, const Floats<Width>& x,
                                                   const Floats<Width>& other, bool joined) const {
    Floats<Width> z;
    if constexpr (output == Output::again) {
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        float y = fmaf(scale.at[k], x.at[k], shift.at[k]);
        if (joined) y += fmaf(scale2.at[k], other.at[k], shift2.at[k]);
        z.at[k] = formula.value(y);
      }
    } else {
      if (Width == pack_width && from.mask != nullptr) {
        const unsigned bits = from.mask[at / pack_width];
#pragma unroll
        for (int k = 0; k < Width; ++k) z.at[k] = (bits >> k & 1U) != 0 ? 1.0F : 0.0F;
      } else {
        z = load_or<Width>(static_cast<const T*>(from.z), at, 1);
      }
    }
    return z;
  }
};

inline Output output_of(const MaskedGradient& from) {
  const bool has_curve = from.act.curve != Curve::none;
  return has_curve && from.z == nullptr && from.mask == nullptr ? Output::again : Output::stored;
}

}  // namespace convoy::cuda
