// SPDX-License-Identifier: Apache-2.0
#include "support/reference/orthogonal.hpp"

#include <cmath>

namespace convoy::reference {
namespace {

/// y X^T X.
Values times_gram(const Values& y, const Values& x, std::size_t rows) {
  const std::size_t columns = x.size() / rows;
  Values result(x.size(), 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < columns; ++k) product += y[i * columns + k] * x[j * columns + k];
      for (std::size_t k = 0; k < columns; ++k) result[i * columns + k] += product * x[j * columns + k];
    }
  return result;
}

}  // namespace

double norm_of(const Values& values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return std::sqrt(squares);
}

Values orthogonal(Values x, std::size_t rows) {
  const double norm = norm_of(x);
  for (double& v : x) v /= norm;
  for (int i = 0; i < 5; ++i) {
    const Values cubed = times_gram(x, x, rows), fifth = times_gram(cubed, x, rows);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = 3.4445 * x[k] - 4.7750 * cubed[k] + 2.0315 * fifth[k];
  }
  return x;
}

}  // namespace convoy::reference
