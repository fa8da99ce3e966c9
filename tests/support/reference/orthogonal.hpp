// SPDX-License-Identifier: Apache-2.0
// Muon's orthogonal matrix in double, by loops over elements.
#pragma once
#include "support/reference/tensor.hpp"

namespace convoy::reference {

/// Square root of the sum of squares.
double norm_of(const Values& values);

/// Five times 3.4445 X - 4.7750 X X^T X + 2.0315 X X^T X X^T X, of X over its norm; X lies row by row.
Values orthogonal(Values x, std::size_t rows);

}  // namespace convoy::reference
