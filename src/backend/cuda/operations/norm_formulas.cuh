// SPDX-License-Identifier: Apache-2.0
// From the sums of a batch norm to the vectors that others read, one channel at a time: for kernels of its own, for the
// last block of a reduction, and in front of a pass over the tensor (operations/batch_norm.hpp has the formulas).
#pragma once
#include "backend/cuda/kernels/pack.cuh"
#include "backend/cuda/operations/batch_norm.hpp"

namespace convoy::cuda {

template <class Low>
__device__ __forceinline__ void write_scale(const NormVectors& vectors, int c, double scale, double shift) {
  if (vectors.scale != nullptr) vectors.scale[c] = static_cast<float>(scale);
  if (vectors.shift != nullptr) vectors.shift[c] = static_cast<float>(shift);
  if (vectors.low_scale != nullptr)
    static_cast<Low*>(vectors.low_scale)[c] = Element<Low>::down(static_cast<float>(scale));
  if (vectors.low_shift != nullptr)
    static_cast<Low*>(vectors.low_shift)[c] = Element<Low>::down(static_cast<float>(shift));
}

struct FinishedNorm {
  double count, mean, variance, rstd, scale, shift;
};

/// Of a channel whose sums over `count` pixels are complete.
__device__ __forceinline__ FinishedNorm finish_channel(const NormFinish& finish, int c, double sum, double squares) {
  FinishedNorm norm;
  norm.count = finish.feed->shared * static_cast<double>(finish.pixels);
  norm.mean = sum / norm.count;
  const double centred = squares / norm.count - norm.mean * norm.mean;
  norm.variance = centred < 0 ? 0 : centred;  // keeps NaN
  norm.rstd = 1 / sqrt(norm.variance + static_cast<double>(finish.epsilon));
  norm.scale = static_cast<double>(finish.gamma[c]) * norm.rstd;
  norm.shift = static_cast<double>(finish.beta[c]) - norm.mean * norm.scale;
  return norm;
}

template <class Low>
__device__ __forceinline__ void write_norm(const NormFinish& finish, int c, const FinishedNorm& norm) {
  if (finish.vectors.mean != nullptr) finish.vectors.mean[c] = static_cast<float>(norm.mean);
  if (finish.vectors.rstd != nullptr) finish.vectors.rstd[c] = static_cast<float>(norm.rstd);
  write_scale<Low>(finish.vectors, c, norm.scale, norm.shift);
  if (finish.tail_mean == nullptr) return;
  const auto weight = static_cast<double>(finish.feed->weight);
  const double unbiased = norm.count > 1 ? norm.count / (norm.count - 1) : 1;
  finish.tail_mean[c] = static_cast<float>(weight * norm.mean);
  finish.tail_variance[c] = static_cast<float>(weight * unbiased * norm.variance);
}

/// Sums from rounded products are off by a few u, which the variance feels mean^2 / variance times as strongly. In fp32
/// it may feel 1e-5; in half precision the storage's own rounding of x is felt more than that, and 2.5e-4 stays below
/// it.
template <class T>
constexpr double largest_mean_square = sizeof(T) == 4 ? 16 : 1024;

template <class T>
__device__ __forceinline__ bool drowns(double sum, double squares, double rows) {
  const double mean = sum / rows, variance = squares / rows - mean * mean;
  return mean * mean > largest_mean_square<T> * variance;
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

/// What the last block of a reduction of gradients does with the totals of a channel: dbeta, then the products of each
/// norm.
template <int Terms>
__device__ __forceinline__ void end_sums(const GradientSumsEnd& end, int channels, int c,
                                         const double (&total)[Terms]) {
  if (end.totals != nullptr) {
#pragma unroll
    for (int t = 0; t < Terms; ++t) end.totals[t * channels + c] = static_cast<float>(total[t]);
  }
#pragma unroll
  for (int n = 0; n + 1 < Terms; ++n) {
    const NormGradients& gradients = end.gradients[n];
    if (gradients.rstd == nullptr) continue;
    const double dgamma = total[n + 1] * static_cast<double>(gradients.rstd[c]);
    write_gradients(gradients, c, total[0], dgamma);
    write_factors(end.factors[n], c, total[0], dgamma);
  }
}

}  // namespace convoy::cuda
