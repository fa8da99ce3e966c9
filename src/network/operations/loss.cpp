// SPDX-License-Identifier: Apache-2.0
#include "network/operations/loss.hpp"

#include <fmt/core.h>

#include "core/errors.hpp"

namespace convoy {

Shape Loss::shape(const NodeInputs& inputs) const {
  const Index logits = inputs.first().count();
  if (logits != inputs.classes)
    fail(Exit::usage, "node '{}' gets {} values per image for {} classes; give the last layer one value per class",
         inputs.node, logits, inputs.classes);
  return {1};
}

Contract Loss::contract() const { return {.possible = label_smoothing >= 0 && label_smoothing < 1 && weight > 0}; }

std::string Loss::text() const {
  return fmt::format("softmax cross-entropy, label smoothing {}{}", label_smoothing,
                     weight == 1 ? "" : fmt::format(", weight {}", weight));
}

// The outputs are the logits, n c.
OnnxOperators Loss::onnx(const NodeInputs&) const { return {{"Flatten"}}; }

bool Loss::ends_onnx(const OnnxSite& site) {
  if (site.type != "Flatten" && site.type != "Softmax" && site.type != "LogSoftmax") return false;
  // Softmax had 1 as its default until opset 12, then -1: the same of logits.
  const Index axis = site.whole("axis", 1);
  return axis == 1 || (axis == -1 && site.type != "Flatten");
}

}  // namespace convoy
