// SPDX-License-Identifier: Apache-2.0
// Every elementwise layer in one pass: batch norm, bias, sum of two branches, activation.
//   x' = scale * x + shift (+ other | + scale2 * other + shift2),  z = f(x')
//   g = (dz (+ dz_more)) * f'(x', z)
// f is a rule of backend/rules/activation.hpp. All gradients of activations carry the loss scale.
#pragma once
#include "backend/cuda/operations/batch_norm.hpp"

namespace convoy::cuda {

/// z = activation(scale * x + shift (+ other | + scale2 * other + shift2)). Without scale x counts as it is (shift may
/// stand alone: a bias). Covers batch norm, activation, addition and joins in one pass. z may be x or other.
struct Apply {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  ActivationRule activation;
  const void* x = nullptr;
  const float *scale = nullptr, *shift = nullptr;
  const void* other = nullptr;
  const float *scale2 = nullptr, *shift2 = nullptr;
  void* z = nullptr;
  std::uint8_t* mask = nullptr;  ///< relu only: 1 bit an element, z > 0; needs channels % 8 == 0
  /// Norms of x and other whose sums are complete (channels 0: none), in place of scale and shift: each block finishes
  /// those of its channels, and the first of a column writes their vectors. A channel that drowns is summed again by
  /// every block, so this is for tensors that are small.
  NormFinish finish, finish2;
};
/// Elements up to which a launch for the norm alone costs more than blocks that finish it: 4 M, 3 us of a pass over
/// half-precision tensors.
constexpr Index most_finished_elements = Index{1} << 22;
cudaError_t apply(const Apply& apply, cudaStream_t stream);

/// The gradient before the activation: dz (+ dz_more) times the derivative. The derivative is taken from z, or for ReLU
/// from the mask; or, where both are null, from the activation's input, computed again as Apply makes it of x and
/// other. GELU and SiLU know the last way alone.
struct MaskedGradient {
  ActivationRule activation;
  const void *dz = nullptr, *dz_more = nullptr;
  const void* z = nullptr;
  const std::uint8_t* mask = nullptr;
  const float *scale = nullptr, *shift = nullptr;    ///< compute the input again
  const float *scale2 = nullptr, *shift2 = nullptr;  ///< the same, of the second term
};

/// Sums of g, g * (x - mean) and, with a second norm (mean2), g * (other - mean2) over rows, in one launch whose last
/// block finishes the norms. Writes g if wanted; g may be dz or dz_more.
struct BackwardReduce {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  MaskedGradient from;
  const void* x = nullptr;
  const void* other = nullptr;
  const float *mean = nullptr, *mean2 = nullptr;
  void* g = nullptr;
  ReductionPlace place;  ///< of 2 terms, or 3
  GradientSumsEnd end;
};
cudaError_t reduce_backward(const BackwardReduce& reduce, cudaStream_t stream);

/// A norm's factors from the complete sums of a convolution, made by each block for its own channels: no launch stands
/// between the convolution and this pass. The first block of a column also writes the norm's own gradients.
struct FactorSums {
  const float *dbeta = nullptr, *dgamma = nullptr;  ///< sum g, sum g * xhat; null: the factors are vectors in memory
  const float *gamma = nullptr, *rstd = nullptr, *mean = nullptr;
  const FeedNumbers* feed = nullptr;
  Index pixels = 0;
  const float* loss_scale = nullptr;                ///< null: 1
  float *to_dgamma = nullptr, *to_dbeta = nullptr;  ///< in the gradient block, without the loss scale; null: not wanted
};

/// dx = a * g + b * x + d, and at a join of two norms dx2 = a2 * g + b2 * other + d2, in one pass. Without `a`
/// dx = g: the gradient of activation or addition alone. g is `from`, masked on the fly; a stored g: from.dz with
/// activation none. dx may be dz, dz_more, or x; dx2 may be other.
struct BackwardApply {
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;
  MaskedGradient from;
  const void* x = nullptr;
  const void* other = nullptr;
  const float *a = nullptr, *b = nullptr, *d = nullptr;
  const float *a2 = nullptr, *b2 = nullptr, *d2 = nullptr;
  FactorSums sums, sums2;  ///< in place of a, b, d; of a2, b2, d2
  void* dx = nullptr;
  void* dx2 = nullptr;
};
cudaError_t apply_backward(const BackwardApply& apply, cudaStream_t stream);

}  // namespace convoy::cuda
