// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "network/operations/operation.hpp"

namespace convoy {

/// A shape for messages, as parts of the image's sides h and w: `8 x h/2 x w/2`. In numbers, with the image that they
/// belong to, where they are no whole parts.
std::string input_shape_text(const NodeInputs& inputs, const Shape& shape);

}  // namespace convoy
