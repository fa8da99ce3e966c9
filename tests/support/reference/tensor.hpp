// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "core/types.hpp"

namespace convoy::reference {

using Values = std::vector<double>;

/// n c h w in double; what a linear layer or the loss sees has h = w = 1.
struct Tensor {
  Index n = 0, c = 0, h = 1, w = 1;
  Values values;

  Tensor() = default;
  Tensor(Index n_, Index c_, Index h_ = 1, Index w_ = 1) : n(n_), c(c_), h(h_), w(w_) {
    values.assign(static_cast<std::size_t>(n * c * h * w), 0.0);
  }
  static Tensor like(const Tensor& x) { return {x.n, x.c, x.h, x.w}; }
  Index count() const { return n * c * h * w; }
  double* line(Index i, Index k, Index p) { return values.data() + ((i * c + k) * h + p) * w; }
  const double* line(Index i, Index k, Index p) const { return values.data() + ((i * c + k) * h + p) * w; }
  double& at(Index i, Index k, Index p = 0, Index q = 0) { return line(i, k, p)[q]; }
  double at(Index i, Index k, Index p = 0, Index q = 0) const { return line(i, k, p)[q]; }
};

}  // namespace convoy::reference
