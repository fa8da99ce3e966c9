// SPDX-License-Identifier: Apache-2.0
// A whole graph in double: forward, loss and backward, one node after another, all activations kept.
#pragma once
#include <span>

#include "backend/backend.hpp"
#include "network/plan.hpp"
#include "support/reference/tensor.hpp"
#include "support/rounding.hpp"

namespace convoy::reference {

struct NetworkInput {
  const Values* values = nullptr;  ///< parameters, as plan.table lays them out
  const Values* statistics =
      nullptr;  ///< running ones, as plan.table.statistics; null: the batch's are used (training)
  const Tensor* x = nullptr;
  std::span<const SampleSpec> samples;  ///< labels
  double scale = 1;                     ///< of each sample's loss in the gradients
  StepParams step = {};                 ///< with the samples' positions it decides what dropout drops
  double tie_distance = 0;              ///< units as near to their kinks are listed
};

struct NetworkResult {
  Tensor logits, dx;      ///< dx: of the network input
  Values loss;            ///< per sample, of all heads, unscaled
  Values gradients;       ///< as plan.table.parameters
  Values statistics;      ///< as plan.table.statistics: batch mean and unbiased variance
  std::vector<Tie> ties;  ///< the units within tie_distance of their kinks
};

NetworkResult run_network(const Plan& plan, const NetworkInput& input);

}  // namespace convoy::reference
