// SPDX-License-Identifier: Apache-2.0
#include "network/orthogonal_start.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace convoy {
namespace {

/// Vectors that take their parts along an earlier one away while it is in the cache.
constexpr Index panel = 16;

double dot(const double* a, const double* b, Index n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void take_away(double* from, const double* unit, Index n) {
  const double part = dot(from, unit, n);
#pragma omp simd
  for (Index i = 0; i < n; ++i) from[i] -= part * unit[i];
}

void normalise(double* v, Index n) {
  const double factor = 1 / std::sqrt(dot(v, v, n));
  for (Index i = 0; i < n; ++i) v[i] *= factor;
}

/// Modified Gram-Schmidt of `count` vectors of `n` numbers, one behind the other. Random normals are far from
/// dependent: in double, what is lost stays far below fp32's rounding.
void orthonormalise(double* vectors, Index count, Index n) {
  for (Index first = 0; first < count; first += panel) {
    const Index end = std::min(count, first + panel);
#pragma omp parallel for schedule(static)
    for (Index j = first; j < end; ++j)
      for (Index k = 0; k < first; ++k) take_away(vectors + j * n, vectors + k * n, n);
    for (Index j = first; j < end; ++j) {
      for (Index k = first; k < j; ++k) take_away(vectors + j * n, vectors + k * n, n);
      normalise(vectors + j * n, n);
    }
  }
}

}  // namespace

void fill_orthogonal(Index rows, Index columns, double gain, Random& random, float* values) {
  const bool of_rows = rows <= columns;
  const Index count = of_rows ? rows : columns, n = of_rows ? columns : rows;
  const auto at = [&](Index row, Index column) {
    return static_cast<std::size_t>(of_rows ? row * n + column : column * n + row);
  };
  std::vector<double> vectors(static_cast<std::size_t>(rows * columns));
  for (Index row = 0; row < rows; ++row)
    for (Index column = 0; column < columns; ++column) vectors[at(row, column)] = random.normal();
  orthonormalise(vectors.data(), count, n);
  for (Index row = 0; row < rows; ++row)
    for (Index column = 0; column < columns; ++column)
      values[row * columns + column] = static_cast<float>(gain * vectors[at(row, column)]);
}

}  // namespace convoy
