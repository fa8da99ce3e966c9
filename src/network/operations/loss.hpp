// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "network/operations/operation.hpp"

namespace convoy {

/// Softmax cross-entropy of logits with labels (a, b) weighted (lambda, 1 - lambda) and smoothing e: the target is
/// (1 - e) * onehot + e / classes. Loss of a sample; the batch's scale is applied to its gradient. Several losses of a
/// graph are added up, each times its weight: the last one, with weight 1, is the network's own; the others are those
/// of auxiliary heads, which training alone has.
struct Loss {
  float label_smoothing = 0;
  float weight = 1;

  Shape shape(const NodeInputs& inputs) const;
  Contract contract() const;
  std::string text() const;
  OnnxOperators onnx(const NodeInputs& inputs) const;
  /// An operator behind the logits, which the loss makes needless: `Softmax` over the classes.
  static bool ends_onnx(const OnnxSite& site);
};

}  // namespace convoy
