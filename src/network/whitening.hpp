// SPDX-License-Identifier: Apache-2.0
// Filters with which a first convolution whitens the patches of images (Initialiser::Fill::whitening). Its outputs are
// the principal components of a patch, each with a variance of 1 (Jordan 2024, arXiv 2404.00498; after Coates and Ng
// 2012).
#pragma once
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Eigenvalues and eigenvectors of a symmetric matrix.
struct Eigenpairs {
  std::vector<double> values;  ///< in descending order
  /// In the same order, each of length 1. The element of largest magnitude is positive; if two are equally large,
  /// rounding decides which one counts.
  std::vector<std::vector<double>> vectors;
};
/// `matrix`: side x side numbers, row by row. The error of each eigenvalue is about that of a double as large as the
/// largest one.
Eigenpairs eigenpairs_of(const std::vector<double>& matrix, Index side);

/// Is added to an eigenvalue before its root is taken, so that directions without variance are not blown up.
constexpr double whitening_epsilon = 5e-4;

/// Returns filters [k][side], k = `out`: the eigenvectors, those of large eigenvalues first, each divided by
/// sqrt(eigenvalue + whitening_epsilon), and then their negatives. `moments`: side x side numbers, the means of the
/// products of two values of a patch of the network's input (in the order c r s; the mean is not subtracted). Throws
/// Error(usage) for more than 2 * side filters.
std::vector<float> whitening_filters(const std::vector<double>& moments, Index side, Index out);

}  // namespace convoy
