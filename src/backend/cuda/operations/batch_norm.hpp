// SPDX-License-Identifier: Apache-2.0
// The sums and vectors of a batch norm; pointwise.hpp evaluates it.
//   y = scale * x + shift,  scale = gamma * rstd,  shift = beta - mean * scale
//   dbeta = sum g,  dgamma = sum g * (x - mean) * rstd
//   dx = a * g + b * x + d:  a = gamma * rstd,  b = -a * rstd * dgamma / M,  d = -a * dbeta / M - b * mean
// M is the number of samples that share the statistics, times pixels. The gradient g carries the loss scale.
#pragma once
#include "backend/cuda/kernels/tiling.hpp"

namespace convoy::cuda {

/// A convolution's own sums are of floats around zero. Where the mean is so large that the variance drowns in their
/// rounding, a channel is summed again from x, around its mean. Null x: the sums are better than that.
struct Recount {
  Storage storage = Storage::f32;
  const void* x = nullptr;
  Index rows = 0;
};

/// out[t] = sum over parts, `terms` terms. With a stride, in exchanged_parts: a rank's share for the exchange area of
/// synchronised batch norm.
struct SumsFold {
  PartialSums sums;
  int terms = 2;
  Index channels = 0;
  float* out[3] = {};
  Index stride = 0;
  Recount recount;
};
cudaError_t fold_sums(const SumsFold& fold, cudaStream_t stream);

/// What one norm's kernels and convolutions read: `channels` floats each, low: in storage, for prologues. Null: not
/// wanted.
struct NormVectors {
  float *mean = nullptr, *rstd = nullptr, *scale = nullptr, *shift = nullptr;
  float *a = nullptr, *b = nullptr, *d = nullptr;
  void *low_scale = nullptr, *low_shift = nullptr;
};

/// Sums of x and x * x -> mean, rstd, scale, shift; and, training, the tail: weight * mean, weight * unbiased variance.
struct NormFinish {
  PartialSums sums;  ///< this rank's, or exchanged ones
  Recount recount;   ///< in the storage `low`
  Index channels = 0, pixels = 0;
  float epsilon = 0;
  const float *gamma = nullptr, *beta = nullptr;
  const FeedNumbers* feed = nullptr;
  float *tail_mean = nullptr, *tail_variance = nullptr;  ///< null in score mode
  Storage low = Storage::f16;                            ///< low_scale and low_shift have it
  NormVectors vectors;
};
/// The norms of two branches that meet may share a launch.
inline constexpr int most_finished = 2;
cudaError_t finish_statistics(const NormFinish* finishes, int count, cudaStream_t stream);

/// Sums of x and x * x over rows, in one launch whose last block finishes the norm. Relative error of the variance: at
/// most 136 u + 2^-48 mean^2 / variance for up to 64 rows per thread; a longer sum of squares in float adds 2 u per
/// row. Used if no convolution makes the sums.
struct StatisticsReduce {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  const void* x = nullptr;
  ReductionPlace place;     ///< of 2 terms
  float* totals = nullptr;  ///< [2][2][channels]: two parts of two terms, for finish_statistics; null: not wanted
  NormFinish finish;        ///< of these sums, in the storage of x; channels 0: none
};
cudaError_t reduce_statistics(const StatisticsReduce& reduce, cudaStream_t stream);

/// One norm of a network for finish_evaluation; offsets are floats in the set's block.
struct EvaluationNorm {
  Index gamma = 0, beta = 0, mean = 0, variance = 0;
  std::int32_t channels = 0;
  float epsilon = 0;
  NormVectors vectors;  ///< scale, shift, low_scale, low_shift
};
/// Running statistics -> scale and shift of all norms: one launch. `norms`: device memory.
cudaError_t finish_evaluation(const EvaluationNorm* norms, int count, const float* block, Storage low,
                              cudaStream_t stream);

/// Whether the second sum is of g * (x - mean), as reduce_backward makes it, or of g * xhat (cuDNN's dgamma, exchange).
enum class Products : std::uint8_t { centred, normalised };

/// Sums -> dgamma and dbeta of this rank in the gradient block, without the loss scale; null: not trainable.
struct NormGradients {
  PartialSums sums;  ///< terms: dbeta, products
  Products products = Products::centred;
  Index channels = 0;
  const float* rstd = nullptr;
  const float* loss_scale = nullptr;  ///< null: 1
  float *dgamma = nullptr, *dbeta = nullptr;
  float *exchange_dbeta = nullptr, *exchange_dgamma = nullptr;  ///< synchronised batch norm: the sums, with loss scale
};
cudaError_t finish_gradients(const NormGradients& gradients, cudaStream_t stream);

/// Sums (of this rank, or exchanged) -> a, b, d.
struct BackwardFinish {
  PartialSums sums;
  Products products = Products::centred;
  Index channels = 0, pixels = 0;
  const float* gamma = nullptr;
  const FeedNumbers* feed = nullptr;
  NormVectors vectors;  ///< reads mean, rstd; writes a, b, d
};
cudaError_t finish_backward(const BackwardFinish& finish, cudaStream_t stream);

/// What becomes of the sums of g, g * (x - mean) and g * (other - mean2) where a reduction of ours ends.
struct GradientSumsEnd {
  float* totals = nullptr;     ///< [terms][channels], for finish_backward; null: not wanted
  NormGradients gradients[2];  ///< of each norm that is finished here; rstd null: none
  BackwardFinish factors[2];
};

/// Both of the above in one launch, where nothing is exchanged. dgamma, dbeta as in NormGradients.
cudaError_t finish_backward(const BackwardFinish& finish, const NormGradients& gradients, cudaStream_t stream);

}  // namespace convoy::cuda
