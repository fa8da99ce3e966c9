// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "support/reference_operations.hpp"

namespace convoy::reference {

Output forward(const Convolution& spec, const Operands& operands);
Gradient backward(const Convolution& spec, const Operands& operands, const Output& output, const Tensor& dy);
Output forward(const Linear& spec, const Operands& operands);
Gradient backward(const Linear& spec, const Operands& operands, const Output& output, const Tensor& dy);

}  // namespace convoy::reference
