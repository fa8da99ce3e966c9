// SPDX-License-Identifier: Apache-2.0
// Filters of a first convolution that whiten the patches of the images (Initialiser::Fill::whitening): in place of the
// pixels of a patch it then sees their principal components with a variance of 1 (Jordan 2024, arXiv 2404.00498; after
// Coates and Ng 2012).
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Of a symmetric matrix, side x side numbers row by row.
struct Eigenpairs {
  std::vector<double> values;  ///< in descending order
  /// Of length 1, as the values; the largest part is positive (of two alike, rounding decides).
  std::vector<std::vector<double>> vectors;
};
/// Eigenvalues are exact to the largest one times the precision of double.
Eigenpairs eigenpairs_of(const std::vector<double>& matrix, Index side);

/// Added to an eigenvalue before its root is taken, so that directions without variance aren't blown up.
constexpr double whitening_epsilon = 5e-4;

/// `moments`: means of the products of two values of a patch (in the order c r s, of the network's input, the mean not
/// taken off), side x side numbers. Filters [k][side], k = `out`: the eigenvectors, those of large eigenvalues first,
/// each divided by sqrt(eigenvalue + whitening_epsilon), then their negatives. Throws Error(usage) for more than
/// 2 * side filters.
std::vector<float> whitening_filters(const std::vector<double>& moments, Index side, Index out);

}  // namespace convoy
