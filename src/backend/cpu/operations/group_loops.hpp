// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"
#include "network/operations/activation_kind.hpp"

namespace convoy::cpu {

/// One of the terms whose sum an activation is applied to: scale * value + shift. Null scale: the value itself. The
/// vectors have padded_channels.
struct TermArgs {
  const void* value = nullptr;
  const float *scale = nullptr, *shift = nullptr;
};

/// out = activation(term [+ term]). Null second value: one term.
struct EvaluateArgs {
  TensorLayout layout;
  TermArgs terms[2];
  ActivationKind activation = ActivationKind::identity;
  float slope = 0;  ///< of leaky_relu and scale
  void* out = nullptr;
};

/// Mean of each image and channel, and sum of squared distances from it. Rows [image][padded_channels].
/// Relative error of the spread: at most 136 u = 8.1e-6 (u = 2^-24), whatever the mean; see the loop.
struct StatisticsArgs {
  TensorLayout layout;
  const void* value = nullptr;
  double *means = nullptr, *spreads = nullptr;
};

/// A batch norm that receives the accumulated gradient g: products[image][channel] = sum g * (value - mean). Error: at
/// most 35 u of the sum of the absolute terms; see the loop.
struct NormProducts {
  const void* value = nullptr;
  const float* mean = nullptr;
  float* products = nullptr;
};

/// The gradient of a value: out = activation'(x, y) * (a * gradient + b * self + d [+ second]). Null a: gradient as it
/// is. Null second: one summand. With norms, sums[image][channel] = sum out, to at most 33 u of the absolute terms.
struct AccumulateArgs {
  TensorLayout layout;
  const void *gradient = nullptr, *self = nullptr, *second = nullptr;
  const float *a = nullptr, *b = nullptr, *d = nullptr;
  ActivationKind activation = ActivationKind::identity;
  float slope = 0;
  const void* output = nullptr;  ///< y, where the derivative reads it
  TermArgs terms[2];             ///< x is computed again from them, where the derivative reads it
  void* out = nullptr;
  int norms = 0;
  float* sums = nullptr;
  NormProducts norm[2];
};

struct GroupKernels {
  void (*evaluate)(const EvaluateArgs&, std::int64_t begin, std::int64_t end);
  void (*statistics)(const StatisticsArgs&, std::int64_t begin, std::int64_t end);
  void (*accumulate)(const AccumulateArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
