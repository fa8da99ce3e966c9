// SPDX-License-Identifier: Apache-2.0
// Small networks written in one line, so that a failing case can be replayed by its text: images, then operations in
// order.
//   n2c3h7w5 make:k8 conv:k4r3s2p1 bn relu
// make:k      1x1 convolution whose outputs are inputs times +-1, 1/2 or 1/4: exact in any precision, and trainable
// conv:k r s p g b   k outputs, kernel r, stride s, padding p, groups g, bias b (defaults: r1 s1 p0 g1 b0);
//             t q: kernel and padding across the width, where they are others (t7q3: r x 7)
// bn relu leaky tanh gelu silu relu6 hard_swish scale gap flatten linear:k
// maxpool:r s p (c1: ceil) avgpool:r s p (i1: divided by the pixels inside of the image)
// fork        remembers the tensor; add: adds the remembered one; cat: puts its channels behind; swap: exchanges both
// gate hardgate   scales the remembered tensor by a gate of this one
// keep        remembers a third; cat3: puts the channels of both behind
//
// A linear layer to 5 classes and the loss follow.
#pragma once
#include <string>

#include "network/plan.hpp"
#include "support/reference/tensor.hpp"

namespace convoy {

struct CaseGraph {
  reference::Tensor input;  ///< shape
  Graph graph;
};
/// Throws std::runtime_error for a text that it doesn't understand.
CaseGraph parse_case(const std::string& text);

/// Parameters that bf16 holds exactly, so that both precisions are asked for the same numbers.
reference::Values case_parameters(const Plan& plan);

}  // namespace convoy
