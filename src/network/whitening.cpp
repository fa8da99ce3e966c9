// SPDX-License-Identifier: Apache-2.0
#include "network/whitening.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "core/errors.hpp"

namespace convoy {

Eigenpairs eigenpairs_of(const std::vector<double>& matrix, Index side) {
  require(std::ssize(matrix) == side * side, "a matrix that is not square");
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::Map<const Eigen::MatrixXd>(matrix.data(), side, side));
  require(solver.info() == Eigen::Success, "a matrix whose eigenvalues are not found");
  Eigenpairs pairs;
  for (Index at = side; at-- > 0;) {  // the solver's are in ascending order
    pairs.values.push_back(solver.eigenvalues()[at]);
    Eigen::VectorXd vector = solver.eigenvectors().col(at);
    Index largest = 0;
    vector.cwiseAbs().maxCoeff(&largest);
    if (vector[largest] < 0) vector = -vector;
    pairs.vectors.emplace_back(vector.begin(), vector.end());
  }
  return pairs;
}

std::vector<float> whitening_filters(const std::vector<double>& moments, Index side, Index out) {
  if (out > 2 * side)
    fail(Exit::usage, "a convolution of {} filters can't start by whitening patches of {} values ({} filters at most)",
         out, side, 2 * side);
  const Eigenpairs pairs = eigenpairs_of(moments, side);
  std::vector<float> filters;
  for (Index k = 0; k < out; ++k) {
    const auto at = static_cast<std::size_t>(k % side);
    const double factor = (k < side ? 1 : -1) / std::sqrt(std::max(pairs.values[at], 0.0) + whitening_epsilon);
    for (const double part : pairs.vectors[at]) filters.push_back(static_cast<float>(factor * part));
  }
  return filters;
}

}  // namespace convoy
