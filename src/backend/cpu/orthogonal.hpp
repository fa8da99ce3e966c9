// SPDX-License-Identifier: Apache-2.0
// The matrix products of a matrix rule (ADR 0033).
#pragma once
#include "core/types.hpp"

namespace convoy::cpu {

struct MatrixShape {
  Index rows = 0, columns = 0;
  Index count() const { return rows * columns; }
  Index shorter() const { return rows < columns ? rows : columns; }
  /// Multiply-adds of one orthogonalise().
  double macs() const;
};

/// Floats of scratch memory that orthogonalise() needs for the shape.
Index orthogonal_floats(const MatrixShape& shape);

/// Replaces x (row by row) by about U V^T of its singular value decomposition U S V^T: Muon's iterations of Newton and
/// Schulz, after which the singular values lie between 0.7 and 1.2 if none was near 0. The threads share one matrix; in
/// a parallel region each thread has its own. The bits don't depend on the number of threads. Returns false if oneDNN
/// failed.
bool orthogonalise(const MatrixShape& shape, float* x, float* scratch);

}  // namespace convoy::cpu
