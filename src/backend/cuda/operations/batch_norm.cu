// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/batch_norm.hpp"

#include "backend/cuda/kernels/columns.cuh"
#include "backend/cuda/kernels/parts.cuh"

namespace convoy::cuda {
namespace {

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads)
    statistics_kernel(const T* x, float* partial, Index rows, int channels) {
  Floats<Width> sums[2] = {};
  const int c = own_channel<Width>();
  if (c < channels) {
    for (Index row = first_row(); row < rows; row += row_stride()) {
      const Floats<Width> v = load<Width>(x + row * channels + c);
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        sums[0].at[k] += v.at[k];
        sums[1].at[k] = fmaf(v.at[k], v.at[k], sums[1].at[k]);
      }
    }
  }
  write_partial<Width, 2>(sums, partial, channels);
}

template <int Terms>
__global__ void __launch_bounds__(finish_threads) fold_kernel(SumsFold fold) {
  const int c = finish_channel();
  const bool in_use = c < fold.channels;
  double total[Terms];
  add_parts<Terms>(fold.sums, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
#pragma unroll
  for (int t = 0; t < Terms; ++t) fold.out[t][c] = static_cast<float>(total[t]);
}

template <class Low>
__device__ __forceinline__ void write_scale(const NormVectors& vectors, int c, double scale, double shift) {
  if (vectors.scale != nullptr) vectors.scale[c] = static_cast<float>(scale);
  if (vectors.shift != nullptr) vectors.shift[c] = static_cast<float>(shift);
  if (vectors.low_scale != nullptr)
    static_cast<Low*>(vectors.low_scale)[c] = Element<Low>::down(static_cast<float>(scale));
  if (vectors.low_shift != nullptr)
    static_cast<Low*>(vectors.low_shift)[c] = Element<Low>::down(static_cast<float>(shift));
}

template <class Low>
__global__ void __launch_bounds__(finish_threads) finish_kernel(NormFinish finish) {
  const int c = finish_channel();
  const bool in_use = c < finish.channels;
  double total[2];
  add_parts<2>(finish.sums, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
  const double count = finish.feed->shared * static_cast<double>(finish.pixels);
  const double mean = total[0] / count, centred = total[1] / count - mean * mean;
  const double variance = centred < 0 ? 0 : centred;  // keeps NaN
  const double rstd = 1 / sqrt(variance + static_cast<double>(finish.epsilon));
  const double scale = static_cast<double>(finish.gamma[c]) * rstd;
  const double shift = static_cast<double>(finish.beta[c]) - mean * scale;
  if (finish.vectors.mean != nullptr) finish.vectors.mean[c] = static_cast<float>(mean);
  if (finish.vectors.rstd != nullptr) finish.vectors.rstd[c] = static_cast<float>(rstd);
  write_scale<Low>(finish.vectors, c, scale, shift);
  if (finish.tail_mean == nullptr) return;
  const auto weight = static_cast<double>(finish.feed->weight);
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  finish.tail_mean[c] = static_cast<float>(weight * mean);
  finish.tail_variance[c] = static_cast<float>(weight * unbiased * variance);
}

template <class Low>
__global__ void __launch_bounds__(tile_threads) evaluation_kernel(const EvaluationNorm* norms, const float* block) {
  const EvaluationNorm norm = norms[blockIdx.x];
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += tile_threads) {
    const auto mean = static_cast<double>(block[norm.mean + c]),
               variance = static_cast<double>(block[norm.variance + c]);
    const double scale =
        static_cast<double>(block[norm.gamma + c]) / sqrt(variance + static_cast<double>(norm.epsilon));
    write_scale<Low>(norm.vectors, c, scale, static_cast<double>(block[norm.beta + c]) - mean * scale);
  }
}

__device__ __forceinline__ void write_gradients(const NormGradients& to, int c, double dbeta, double dgamma) {
  if (to.exchange_dbeta != nullptr) to.exchange_dbeta[c] = static_cast<float>(dbeta);
  if (to.exchange_dgamma != nullptr) to.exchange_dgamma[c] = static_cast<float>(dgamma);
  const double unscale = to.loss_scale != nullptr ? 1 / static_cast<double>(*to.loss_scale) : 1;
  if (to.dgamma != nullptr) to.dgamma[c] = static_cast<float>(dgamma * unscale);
  if (to.dbeta != nullptr) to.dbeta[c] = static_cast<float>(dbeta * unscale);
}

__device__ __forceinline__ void write_factors(const BackwardFinish& to, int c, double dbeta, double dgamma) {
  const double count = to.feed->shared * static_cast<double>(to.pixels);
  const auto rstd = static_cast<double>(to.vectors.rstd[c]);
  const double a = static_cast<double>(to.gamma[c]) * rstd;
  const double b = -a * rstd * dgamma / count;
  to.vectors.a[c] = static_cast<float>(a);
  to.vectors.b[c] = static_cast<float>(b);
  to.vectors.d[c] = static_cast<float>(-a * dbeta / count - b * static_cast<double>(to.vectors.mean[c]));
}

/// Sums, then what `gradients` and `finish` want.
template <bool gradients_too, bool factors_too>
__global__ void __launch_bounds__(finish_threads)
    backward_kernel(PartialSums sums, Products products, const float* rstd, Index channels, BackwardFinish finish,
                    NormGradients gradients) {
  const int c = finish_channel();
  const bool in_use = c < channels;
  double total[2];
  add_parts<2>(sums, c, in_use, total);
  if (!in_use || threadIdx.y != 0) return;
  const double dgamma = products == Products::centred ? total[1] * static_cast<double>(rstd[c]) : total[1];
  if constexpr (gradients_too) write_gradients(gradients, c, total[0], dgamma);
  if constexpr (factors_too) write_factors(finish, c, total[0], dgamma);
}

}  // namespace

cudaError_t reduce_statistics(const StatisticsReduce& reduce, cudaStream_t stream) {
  const Tiling tiling = tile_reduction(reduce.rows, reduce.channels);
  return with_elements(reduce.storage, reduce.channels, [&](auto tag, auto width) {
    using T = typename decltype(tag)::type;
    constexpr int w = decltype(width)::value;
    return launch(statistics_kernel<T, w>, tiling.grid, tiling.block, partial_bytes<w, 2>(tiling), stream,
                  static_cast<const T*>(reduce.x), reduce.partial, reduce.rows, static_cast<int>(reduce.channels));
  });
}

cudaError_t fold_sums(const SumsFold& fold, cudaStream_t stream) {
  if (fold.terms == 3) return launch(fold_kernel<3>, finish_grid(fold.channels), finish_block(), 0, stream, fold);
  return launch(fold_kernel<2>, finish_grid(fold.channels), finish_block(), 0, stream, fold);
}

cudaError_t finish_statistics(const NormFinish& finish, cudaStream_t stream) {
  return with_storage(finish.low, [&](auto tag) {
    using Low = typename decltype(tag)::type;
    return launch(finish_kernel<Low>, finish_grid(finish.channels), finish_block(), 0, stream, finish);
  });
}

cudaError_t finish_evaluation(const EvaluationNorm* norms, int count, const float* block, Storage low,
                              cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return with_storage(low, [&](auto tag) {
    using Low = typename decltype(tag)::type;
    return launch(evaluation_kernel<Low>, static_cast<unsigned>(count), tile_threads, 0, stream, norms, block);
  });
}

cudaError_t finish_gradients(const NormGradients& gradients, cudaStream_t stream) {
  return launch(backward_kernel<true, false>, finish_grid(gradients.channels), finish_block(), 0, stream,
                gradients.sums, gradients.products, gradients.rstd, gradients.channels, BackwardFinish{}, gradients);
}

cudaError_t finish_backward(const BackwardFinish& finish, cudaStream_t stream) {
  return launch(backward_kernel<false, true>, finish_grid(finish.channels), finish_block(), 0, stream, finish.sums,
                finish.products, finish.vectors.rstd, finish.channels, finish, NormGradients{});
}

cudaError_t finish_backward(const BackwardFinish& finish, const NormGradients& gradients, cudaStream_t stream) {
  return launch(backward_kernel<true, true>, finish_grid(finish.channels), finish_block(), 0, stream, finish.sums,
                finish.products, finish.vectors.rstd, finish.channels, finish, gradients);
}

}  // namespace convoy::cuda
