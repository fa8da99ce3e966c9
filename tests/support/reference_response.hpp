// SPDX-License-Identifier: Apache-2.0
// Local response normalisation and dropout in double.
#pragma once
#include <span>

#include "backend/backend.hpp"
#include "network/graph.hpp"
#include "support/reference_tensor.hpp"

namespace convoy::reference {

Tensor response_forward(const LocalResponseNorm& spec, const Tensor& x);
Tensor response_backward(const LocalResponseNorm& spec, const Tensor& x, const Tensor& dy);

/// What a node multiplies its values by in training: 0 or 1 / (1 - rate), which by backend/rules/dropout.hpp.
Tensor dropout_factors(const Dropout& spec, const Tensor& like, const StepParams& step, NodeId node,
                       std::span<const SampleSpec> samples);

}  // namespace convoy::reference
