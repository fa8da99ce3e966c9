// SPDX-License-Identifier: Apache-2.0
// The per-channel arithmetic of batch norm between passes: moments and sums over images in double and in image order
// (so neither tiles nor threads change them), the vectors that the loops apply, parameter gradients, the tail and the
// exchange area.
//   y = scale * xhat + shift,  xhat = (x - mean) * rstd
//   dshift = sum g,  dscale = sum g * xhat
//   dx = a * g + b * x + d:  a = scale * rstd,  b = -a * rstd * dscale / M,  d = -a * dshift / M - b * mean
// M = samples that share the statistics, times pixels. With synchronised batch norm the sums are those of all ranks.
#pragma once
#include <vector>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/lowering.hpp"
#include "backend/lowering/stages.hpp"
#include "network/plan.hpp"

namespace convoy::cpu {

/// Vectors of one norm, each padded_channels long with zeros past the last channel.
struct NormVectors {
  float *mean = nullptr, *rstd = nullptr, *scale = nullptr, *shift = nullptr, *a = nullptr, *b = nullptr, *d = nullptr;
  // Over this rank's batch; spread: sum of squared distances from the mean.
  double *batch_mean = nullptr, *spread = nullptr, *dshift = nullptr, *dscale = nullptr;
};

/// What changes with a launch.
struct NormStep {
  const float* values = nullptr;      ///< parameters
  const float* statistics = nullptr;  ///< running, for evaluation and frozen norms
  float* gradients = nullptr;         ///< the plan's block; null unless training
  Index shared_samples = 0;           ///< samples that share statistics
  double weight = 0;                  ///< the replica's weight in the tail
};

class Norms {
 public:
  /// `pixels` per norm: height * width of what it normalises.
  Norms(const Plan& plan, const Lowering& lowering, std::vector<Index> pixels, const ArrayKernels& kernels);
  Index floats() const { return floats_; }
  void bind(float* memory);
  const NormVectors& vectors(int norm) const { return items_[static_cast<std::size_t>(norm)].vectors; }

  /// Mean and spread of each image [images][padded_channels] into those of the batch; with sync_bn also, as sums, into
  /// the exchange area.
  void fold_statistics(int norm, const NormStep& step, const double* means, const double* spreads, Index images);
  /// Moments of the batch (or exchanged sums) into mean, rstd, scale, shift; while training also into the tail.
  void prepare_forward(int norm, const NormStep& step);
  /// The vectors of running statistics: also those of the way back, dx = scale * g.
  void prepare_evaluation(int norm, const NormStep& step);
  /// Writes dshift and dscale of this rank's samples where they are trainable.
  void fold_products(int norm, const NormStep& step, const float* sums, const float* products, Index images);
  void prepare_backward(int norm, const NormStep& step);

 private:
  struct Item {
    Index channels = 0, padded = 0, pixels = 1;
    double epsilon = 0;
    Range mean, variance;  ///< places in the statistics block
    Range scale, shift;    ///< places in the values and in the gradient block
    bool scale_trains = false, shift_trains = false;
    lowering::ExchangeRanges exchange;
    NormVectors vectors;
  };
  void fold(const float* rows, Index images, Index padded, double* total) const;

  const ArrayKernels& kernels_;
  bool synchronised_;
  Range tail_;
  std::vector<Item> items_;
  Index floats_ = 0;
};

}  // namespace convoy::cpu
