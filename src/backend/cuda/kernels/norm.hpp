// SPDX-License-Identifier: Apache-2.0
// Batch norm between convolutions, and with it every elementwise layer. With the names of backend/cpu/norms.hpp:
//   y = scale * x + shift,  scale = gamma * rstd,  shift = beta - mean * scale
//   z = curve(y (+ other | + scale2 * other + shift2))
//   g = (dz (+ dz_more)) * curve'(z),  dbeta = sum g,  dgamma = sum g * (x - mean) * rstd
//   dx = a * g + b * x + d:  a = gamma * rstd,  b = -a * rstd * dgamma / M,  d = -a * dbeta / M - b * mean
// M = samples that share the statistics, times pixels. g and all gradients of activations carry the loss scale.
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// Blocks that reductions over `rows` are cut into: the length of their partial sums' first axis. A function of shape
/// alone, so that sums don't depend on the card.
int reduction_blocks(Index rows, Index channels);

/// sum and squares of x over rows: partial[blocks][2][channels]. The plain form, where no convolution made them.
struct StatisticsReduce {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  const void* x = nullptr;
  float* partial = nullptr;  ///< reduction_blocks(rows, channels) * 2 * channels
};
cudaError_t reduce_statistics(const StatisticsReduce& reduce, cudaStream_t stream);

/// Sums of one norm, in parts that are added in double and in their order. Element c of part i of term t lies at
/// at[t][i * stride + c].
struct PartialSums {
  const float* at[3] = {};
  Index parts = 1, stride = 0;
  static PartialSums of_reduce(const float* partial, Index blocks, int terms, Index channels) {
    PartialSums sums{{partial, partial + channels, partial + 2 * channels}, blocks, terms * channels};
    if (terms < 3) sums.at[2] = nullptr;
    return sums;
  }
};

/// out[t] = sum over parts, `terms` terms: a rank's share for the exchange area of synchronised batch norm.
struct SumsFold {
  PartialSums sums;
  int terms = 2;
  Index channels = 0;
  float* out[3] = {};
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
  PartialSums sums;  ///< of this rank, or exchanged
  Index channels = 0, pixels = 0;
  float epsilon = 0;
  const float *gamma = nullptr, *beta = nullptr;
  const FeedNumbers* feed = nullptr;
  float *tail_mean = nullptr, *tail_variance = nullptr;  ///< null in score mode
  Storage low = Storage::f16;                            ///< of low_scale, low_shift
  NormVectors vectors;
};
cudaError_t finish_statistics(const NormFinish& finish, cudaStream_t stream);

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

/// z = curve(scale * x + shift (+ other | + scale2 * other + shift2)). Without scale x counts as it is (shift may
/// stand alone: a bias). Covers batch norm, activation, addition and joins in one pass. z may be x or other.
struct Apply {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  Activating act;
  const void* x = nullptr;
  const float *scale = nullptr, *shift = nullptr;
  const void* other = nullptr;
  const float *scale2 = nullptr, *shift2 = nullptr;
  void* z = nullptr;
  std::uint8_t* mask = nullptr;  ///< relu only: 1 bit an element, z > 0; needs channels % 8 == 0
};
cudaError_t apply(const Apply& apply, cudaStream_t stream);

/// Where g comes from: dz (+ dz_more) times the curve's derivative, which is taken from z, or for relu from the mask,
/// or else from z computed again as Apply makes it of x and other (then z and mask are null). Curve none: no mask.
struct MaskedGradient {
  Activating act;
  const void *dz = nullptr, *dz_more = nullptr;
  const void* z = nullptr;
  const std::uint8_t* mask = nullptr;
  const float *scale = nullptr, *shift = nullptr;    ///< for z computed again
  const float *scale2 = nullptr, *shift2 = nullptr;  ///< for z computed again
};

/// Sums of g, g * (x - mean) and, with a second norm (mean2), g * (other - mean2) over rows: partial[blocks][terms]
/// [channels], terms 2 or 3. Writes g where wanted; g may be dz or dz_more.
struct BackwardReduce {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  MaskedGradient from;
  const void* x = nullptr;
  const void* other = nullptr;
  const float *mean = nullptr, *mean2 = nullptr;
  void* g = nullptr;
  float* partial = nullptr;
};
cudaError_t reduce_backward(const BackwardReduce& reduce, cudaStream_t stream);

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

/// Both of the above in one launch, where nothing is exchanged. dgamma, dbeta as in NormGradients.
cudaError_t finish_backward(const BackwardFinish& finish, const NormGradients& gradients, cudaStream_t stream);

/// dx = a * g + b * x + d, and at a join of two norms dx2 = a2 * g + b2 * other + d2, in one pass. Without `a`
/// dx = g: the gradient of activation or addition alone. g is `from`, masked on the fly; a stored g: from.dz with curve
/// none. dx may be dz, dz_more, or x; dx2 may be other.
struct BackwardApply {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  MaskedGradient from;
  const void* x = nullptr;
  const void* other = nullptr;
  const float *a = nullptr, *b = nullptr, *d = nullptr;
  const float *a2 = nullptr, *b2 = nullptr, *d2 = nullptr;
  void* dx = nullptr;
  void* dx2 = nullptr;
};
cudaError_t apply_backward(const BackwardApply& apply, cudaStream_t stream);

}  // namespace convoy::cuda
