// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/orthogonal.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "optim/muon.hpp"

namespace convoy::cpu {
namespace {

/// One thread computes a whole tile of a product, with all of its terms: oneDNN uses one thread in a parallel region.
/// So neither the number of threads nor the assignment of tiles changes the order of a sum.
constexpr Index tile_rows = 64, tile_columns = 512;

/// Floats that are added up at once for a norm.
constexpr Index norm_floats = 1 << 12;

/// A matrix as it stands in memory, row by row, or its transpose.
struct Factor {
  const float* data;
  Index stride;
  bool transposed;

  const float* from_row(Index row) const { return data + (transposed ? row : row * stride); }
  const float* from_column(Index column) const { return data + (transposed ? column * stride : column); }
  char letter() const { return transposed ? 'T' : 'N'; }
};

/// to[rows][columns] = alpha * left * right + beta * to, of `inner` terms.
struct Product {
  Index rows, columns, inner;
  Factor left, right;
  float alpha, beta;
  float* to;
};

bool multiply(const Product& p) {
  const Index down = (p.rows + tile_rows - 1) / tile_rows, across = (p.columns + tile_columns - 1) / tile_columns;
  std::atomic<bool> good{true};
#pragma omp parallel for schedule(static)
  for (Index tile = 0; tile < down * across; ++tile) {
    const Index row = tile / across * tile_rows, column = tile % across * tile_columns;
    const Index rows = std::min(tile_rows, p.rows - row), columns = std::min(tile_columns, p.columns - column);
    const auto status = dnnl_sgemm(p.left.letter(), p.right.letter(), rows, columns, p.inner, p.alpha,
                                   p.left.from_row(row), p.left.stride, p.right.from_column(column), p.right.stride,
                                   p.beta, p.to + row * p.columns + column, p.columns);
    if (status != dnnl_success) good = false;
  }
  return good;
}

double norm_of(const float* x, Index count) {
  double squares = 0;
  for (Index at = 0; at < count; at += norm_floats) {
    const Index end = std::min(count, at + norm_floats);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Index i = at; i < end; ++i) sum += static_cast<double>(x[i]) * x[i];
    squares += sum;
  }
  return std::sqrt(squares);
}

}  // namespace

double MatrixShape::macs() const {
  const auto s = static_cast<double>(shorter());
  return Muon::iterations * (2 * s * static_cast<double>(count()) + s * s * s);
}

Index orthogonal_floats(const MatrixShape& shape) {
  const Index square = shape.shorter() * shape.shorter();
  return align_floats(shape.count()) + 2 * align_floats(square);
}

bool orthogonalise(const MatrixShape& shape, float* x, float* scratch) {
  const Index rows = shape.rows, columns = shape.columns, side = shape.shorter();
  const bool wide = rows <= columns;
  float* from = x;
  float* to = scratch;
  float* const gram = scratch + align_floats(shape.count());
  float* const polynomial = gram + align_floats(side * side);

  const auto factor = static_cast<float>(1 / std::max(norm_of(x, shape.count()), Muon::least_norm));
  for (Index i = 0; i < shape.count(); ++i) x[i] *= factor;
  bool good = true;
  for (int iteration = 0; iteration < Muon::iterations; ++iteration) {
    // The products with the shorter side: X X^T and P X, or X^T X and X P.
    good = good &&
           multiply({side, side, std::max(rows, columns), {from, columns, !wide}, {from, columns, wide}, 1, 0, gram});
    std::copy_n(gram, side * side, polynomial);
    good = good && multiply({side, side, side, {gram, side, false}, {gram, side, false}, Muon::c, Muon::b, polynomial});
    std::copy_n(from, shape.count(), to);
    const Factor of_x{from, columns, false}, of_p{polynomial, side, false};
    good = good && multiply({rows, columns, side, wide ? of_p : of_x, wide ? of_x : of_p, 1, Muon::a, to});
    std::swap(from, to);
  }
  if (from != x) std::copy_n(from, shape.count(), x);
  return good;
}

}  // namespace convoy::cpu
