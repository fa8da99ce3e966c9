// SPDX-License-Identifier: Apache-2.0
// One step of a plan on a backend, for comparison with the reference.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "support/reference_tensor.hpp"

namespace convoy {

struct BackendInput {
  CompileSpec spec;
  const reference::Values* values = nullptr;      ///< parameters, as plan.table lays them out
  const reference::Values* statistics = nullptr;  ///< running ones; null: zeros
  std::span<const std::uint8_t> images;           ///< n h w c
  std::span<const SampleSpec> samples;
  Index valid_count = -1;  ///< -1: all
  float scale = 1;
};

struct BackendResult {
  std::vector<float> logits, loss;  ///< n x classes, n
  std::vector<float> gradients;     ///< the gradient block; empty in evaluation
  Counters counters;
  std::string description;
};

/// Compiles, binds memory that is poisoned with NaN and fenced by guards, and launches every stage once. EXPECTs that
/// the guards and the parameters stayed as they were.
BackendResult run_on(Backend& backend, const Plan& plan, const BackendInput& input);

}  // namespace convoy
