// SPDX-License-Identifier: Apache-2.0
// Every operation of network/operations in double, by its definition and without tricks. Small cases by hand prove
// forward, finite differences prove backward, PyTorch in double proves both; and these prove the backends.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "network/graph.hpp"
#include "support/reference/tensor.hpp"

namespace convoy::reference {

/// What a node works on: its inputs and its parameters in the order of its contract.
struct Operands {
  std::vector<const Tensor*> x;
  std::vector<const Values*> parameters;
  /// Batch norm only: with both set, these statistics (evaluation); else the batch's.
  const Values *running_mean = nullptr, *running_variance = nullptr;
  /// Dropout only: what each value is multiplied by; null: 1 (evaluation).
  const Values* factors = nullptr;
};

struct Output {
  Tensor y;
  Values mean, variance;  ///< batch norm: of the batch, the variance biased
};

struct Gradient {
  std::vector<Tensor> dx;
  std::vector<Values> dparameters;
};

/// Any node but Input and Loss.
Output forward(const Node& node, const Operands& operands);
/// Gradient of sum(y * dy); through the batch's statistics unless running ones were given.
Gradient backward(const Node& node, const Operands& operands, const Output& output, const Tensor& dy);

// One source each: NAME.cpp.
Output forward(const Convolution& spec, const Operands& operands);
Output forward(const BatchNorm& spec, const Operands& operands);
Output forward(const Activation& spec, const Operands& operands);
Output forward(const Pool& spec, const Operands& operands);
Index pooled_size(const Pool& spec, Index side);  ///< windows along a side
Output forward(const GlobalAveragePool& spec, const Operands& operands);
Output forward(const AdaptiveAveragePool& spec, const Operands& operands);
Output forward(const Linear& spec, const Operands& operands);
Output forward(const LocalResponseNorm& spec, const Operands& operands);
Output forward(const Dropout& spec, const Operands& operands);
Output forward(const Add& spec, const Operands& operands);
Output forward(const Concatenation& spec, const Operands& operands);
Output forward(const ChannelGate& spec, const Operands& operands);
Output forward(const Flatten& spec, const Operands& operands);
Gradient backward(const Convolution& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const BatchNorm& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Activation& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Pool& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const GlobalAveragePool& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const AdaptiveAveragePool& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Linear& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const LocalResponseNorm& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Dropout& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Add& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Concatenation& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const ChannelGate& spec, const Operands& operands, const Output& output, const Tensor& dy);
Gradient backward(const Flatten& spec, const Operands& operands, const Output& output, const Tensor& dy);

/// What a dropout multiplies its values by in training: 0 or 1 / (1 - rate), which by backend/rules/dropout.hpp.
Tensor dropout_factors(const Dropout& spec, const Tensor& like, const StepParams& step, NodeId node,
                       std::span<const SampleSpec> samples);

/// Loss of each sample times the loss's weight, unscaled. `class_weights`: empty: all are 1.
Values loss_forward(const Loss& loss, const Tensor& logits, std::span<const SampleSpec> samples,
                    std::span<const float> class_weights = {});
/// Gradient of scale * sum of losses.
Tensor loss_backward(const Loss& loss, const Tensor& logits, std::span<const SampleSpec> samples, double scale,
                     std::span<const float> class_weights = {});

}  // namespace convoy::reference
