// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/operations/norm_formulas.cuh"
#include "backend/cuda/operations/pointwise.hpp"

namespace convoy::cuda {
namespace {

/// Where the activation's input and output come from, as far as its derivative reads them: the output or a mask from
/// memory (or nothing, without an activation), or both are computed again from the group's terms.
enum class Source { stored, again };

/// Gradients before the activation, one row's channels at a time. What belongs to the thread's channels stays in
/// registers.
template <class T, int Width, Source source>
struct GradientSource {
  const MaskedGradient& from;
  Floats<Width> scale, shift, scale2, shift2;

  __device__ __forceinline__ GradientSource(const MaskedGradient& gradient, int c)
      : from(gradient),
        scale(load_or<Width>(source == Source::again ? gradient.scale : nullptr, c, 1)),
        shift(load_or<Width>(source == Source::again ? gradient.shift : nullptr, c, 0)),
        scale2(load_or<Width>(source == Source::again ? gradient.scale2 : nullptr, c, 1)),
        shift2(load_or<Width>(source == Source::again ? gradient.shift2 : nullptr, c, 0)) {}

  /// x and other are the row's terms, read where `source` is again. `joined`: there is an other.
  template <class Rule>
  __device__ __forceinline__ Floats<Width> g(const Rule& rule, Index at, const Floats<Width>& x,
                                             const Floats<Width>& other, bool joined) const {
    Floats<Width> g = load<Width>(static_cast<const T*>(from.dz) + at);
    if (from.dz_more != nullptr) {
      const Floats<Width> more = load<Width>(static_cast<const T*>(from.dz_more) + at);
#pragma unroll
      for (int k = 0; k < Width; ++k) g.at[k] += more.at[k];
    }
    if constexpr (source == Source::again) {
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        float input = fmaf(scale.at[k], x.at[k], shift.at[k]);
        if (joined) input += fmaf(scale2.at[k], other.at[k], shift2.at[k]);
        g.at[k] *= rule.derivative(input, rule.value(input));
      }
    } else if constexpr (!Rule::needs_input) {  // else the launcher chose `again`
      const Floats<Width> z = output(at);
#pragma unroll
      for (int k = 0; k < Width; ++k) g.at[k] *= rule.derivative(0, z.at[k]);
    }
    return g;
  }

 private:
  __device__ __forceinline__ Floats<Width> output(Index at) const {
    if (Width == pack_width && from.mask != nullptr) {
      Floats<Width> z;
      const unsigned bits = from.mask[at / pack_width];
#pragma unroll
      for (int k = 0; k < Width; ++k) z.at[k] = (bits >> k & 1U) != 0 ? 1.0F : 0.0F;
      return z;
    }
    return load_or<Width>(static_cast<const T*>(from.z), at, 1);
  }
};

Source source_of(const MaskedGradient& from) {
  const bool has_activation = from.activation.kind != ActivationKind::identity;
  return has_activation && from.z == nullptr && from.mask == nullptr ? Source::again : Source::stored;
}

/// One norm, or the two of a join.
enum class Norms { one, two };

template <class T, int Width>
__device__ __forceinline__ Floats<Width> row_of(const void* from, Index at) {
  return load_or<Width>(static_cast<const T*>(from), at, 0);
}

template <class T, int Width, Source from, Norms norms>
__global__ void __launch_bounds__(tile_threads) reduce_kernel(BackwardReduce reduce) {
  await_previous();
  constexpr int terms = norms == Norms::two ? 3 : 2;
  Floats<Width> sums[terms] = {};
  const int c = own_channel<Width>();
  if (c < reduce.channels) {
    const GradientSource<T, Width, from> source(reduce.from, c);
    const Floats<Width> mean = load_or<Width>(reduce.mean, c, 0);
    const Floats<Width> mean2 = load_or<Width>(norms == Norms::two ? reduce.mean2 : nullptr, c, 0);
    with_rule(reduce.from.activation, [&](auto rule) {
      for (Index row = first_row(); row < reduce.rows; row += row_stride()) {
        const Index at = row * reduce.channels + c;
        const Floats<Width> x = row_of<T, Width>(reduce.x, at), other = row_of<T, Width>(reduce.other, at);
        const Floats<Width> g = source.g(rule, at, x, other, reduce.other != nullptr);
        if (reduce.g != nullptr) store<Width>(static_cast<T*>(reduce.g) + at, g);
#pragma unroll
        for (int k = 0; k < Width; ++k) {
          sums[0].at[k] += g.at[k];
          sums[1].at[k] = fmaf(g.at[k], x.at[k] - mean.at[k], sums[1].at[k]);
          if constexpr (norms == Norms::two) sums[2].at[k] = fmaf(g.at[k], other.at[k] - mean2.at[k], sums[2].at[k]);
        }
      }
    });
  }
  const int channels = static_cast<int>(reduce.channels);
  write_partial<Width, terms>(sums, reduce.place, channels);
  add_over_grid<terms>(
      reduce.place, static_cast<int>(blockDim.x) * Width, channels,
      [&](int channel, double(&total)[terms]) { end_sums<terms>(reduce.end, channels, channel, total); });
}

/// dx = a * g + b * x + d.
template <int Width>
struct Factors {
  Floats<Width> a, b, d;

  __device__ __forceinline__ Factors(const float* in_a, const float* in_b, const float* in_d, const FactorSums& sums,
                                     int c) {
    if (sums.dbeta == nullptr) {
      a = load_or<Width>(in_a, c, 1);
      b = load_or<Width>(in_b, c, 0);
      d = load_or<Width>(in_d, c, 0);
      return;
    }
    const Floats<Width> dbeta = load<Width>(sums.dbeta + c), dgamma = load<Width>(sums.dgamma + c);
    const Floats<Width> gamma = load<Width>(sums.gamma + c), rstd = load<Width>(sums.rstd + c);
    const Floats<Width> mean = load<Width>(sums.mean + c);
    const float share = 1 / static_cast<float>(sums.feed->shared * static_cast<double>(sums.pixels));
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      a.at[k] = gamma.at[k] * rstd.at[k];
      b.at[k] = -a.at[k] * rstd.at[k] * (dgamma.at[k] * share);
      d.at[k] = -a.at[k] * (dbeta.at[k] * share) - b.at[k] * mean.at[k];
    }
    if (blockIdx.x != 0 || threadIdx.y != 0) return;
    const float unscale = sums.loss_scale != nullptr ? 1 / *sums.loss_scale : 1;
    write_scaled(sums.to_dgamma, c, dgamma, unscale);
    write_scaled(sums.to_dbeta, c, dbeta, unscale);
  }

  __device__ __forceinline__ float dx(int k, float g, float x) const {
    return fmaf(a.at[k], g, fmaf(b.at[k], x, d.at[k]));
  }

 private:
  static __device__ __forceinline__ void write_scaled(float* to, int c, Floats<Width> values, float factor) {
    if (to == nullptr) return;
#pragma unroll
    for (int k = 0; k < Width; ++k) values.at[k] *= factor;
    store<Width>(to + c, values);
  }
};

template <class T, int Width, Source from, Norms norms>
__global__ void __launch_bounds__(tile_threads) apply_kernel(BackwardApply apply) {
  await_previous();
  const int c = own_channel<Width>();
  if (c >= apply.channels) return;
  const GradientSource<T, Width, from> source(apply.from, c);
  const Factors<Width> one(apply.a, apply.b, apply.d, apply.sums, c);
  const bool second = norms == Norms::two;
  const Factors<Width> two(second ? apply.a2 : nullptr, second ? apply.b2 : nullptr, second ? apply.d2 : nullptr,
                           second ? apply.sums2 : FactorSums{}, c);
  with_rule(apply.from.activation, [&](auto rule) {
    for (Index row = first_row(); row < apply.rows; row += row_stride()) {
      const Index at = from_the_end(row, apply.rows) * apply.channels + c;
      const Floats<Width> x = row_of<T, Width>(apply.x, at), other = row_of<T, Width>(apply.other, at);
      const Floats<Width> g = source.g(rule, at, x, other, apply.other != nullptr);
      Floats<Width> dx, dx2;
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        dx.at[k] = one.dx(k, g.at[k], x.at[k]);
        dx2.at[k] = two.dx(k, g.at[k], other.at[k]);
      }
      store<Width>(static_cast<T*>(apply.dx) + at, dx);
      if constexpr (norms == Norms::two) store<Width>(static_cast<T*>(apply.dx2) + at, dx2);
    }
  });
}

template <class T, int Width, Norms norms>
auto reduce_kernel_for(Source source) {
  return source == Source::again ? reduce_kernel<T, Width, Source::again, norms>
                                 : reduce_kernel<T, Width, Source::stored, norms>;
}
template <class T, int Width>
auto apply_kernel_for(Source source, bool two) {
  if (two) {
    return source == Source::again ? apply_kernel<T, Width, Source::again, Norms::two>
                                   : apply_kernel<T, Width, Source::stored, Norms::two>;
  }
  return source == Source::again ? apply_kernel<T, Width, Source::again, Norms::one>
                                 : apply_kernel<T, Width, Source::stored, Norms::one>;
}

}  // namespace

cudaError_t reduce_backward(const BackwardReduce& reduce, cudaStream_t stream) {
  const Tiling tiling = tile_reduction(reduce.rows, reduce.channels);
  const Source source = source_of(reduce.from);
  return with_elements(reduce.storage, reduce.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    if (reduce.mean2 != nullptr)
      return launch(reduce_kernel_for<T, w, Norms::two>(source), tiling.grid, tiling.block, partial_bytes<w, 3>(tiling),
                    stream, reduce);
    return launch(reduce_kernel_for<T, w, Norms::one>(source), tiling.grid, tiling.block, partial_bytes<w, 2>(tiling),
                  stream, reduce);
  });
}

cudaError_t apply_backward(const BackwardApply& apply, cudaStream_t stream) {
  if (apply.rows <= 0) return cudaSuccess;
  const Tiling tiling = tile_elements(apply.rows, apply.channels);
  return with_elements(apply.storage, apply.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    return launch(apply_kernel_for<T, decltype(width)::value>(source_of(apply.from), apply.dx2 != nullptr), tiling.grid,
                  tiling.block, 0, stream, apply);
  });
}

}  // namespace convoy::cuda
