// SPDX-License-Identifier: Apache-2.0
#include "network/whitening.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// Rows and columns p and q turn so that element (p, q) becomes 0. `vectors`: columns turn along.
class Rotation {
 public:
  Rotation(const std::vector<double>& a, std::size_t side, std::size_t p, std::size_t q) : side_(side), p_(p), q_(q) {
    const double half = (a[q * side + q] - a[p * side + p]) / (2 * a[p * side + q]);
    const double tangent = (half >= 0 ? 1 : -1) / (std::abs(half) + std::sqrt(half * half + 1));
    cosine_ = 1 / std::sqrt(tangent * tangent + 1);
    sine_ = tangent * cosine_;
  }
  void turn_columns(std::vector<double>& a) const {
    for (std::size_t i = 0; i < side_; ++i) turn(a[i * side_ + p_], a[i * side_ + q_]);
  }
  void turn_rows(std::vector<double>& a) const {
    for (std::size_t i = 0; i < side_; ++i) turn(a[p_ * side_ + i], a[q_ * side_ + i]);
  }

 private:
  void turn(double& p, double& q) const {
    const double old = p;
    p = cosine_ * old - sine_ * q;
    q = sine_ * old + cosine_ * q;
  }
  std::size_t side_, p_, q_;
  double cosine_ = 1, sine_ = 0;
};

}  // namespace

Eigen eigen_of(std::vector<double> matrix, Index side) {
  const auto n = static_cast<std::size_t>(side);
  require(matrix.size() == n * n, "a matrix that is not square");
  std::vector<double> vectors(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
  double scale = 0;
  for (const double element : matrix) scale = std::max(scale, std::abs(element));
  // Convergence is quadratic: a handful of cycles is usual.
  constexpr int most_cycles = 100;
  constexpr double negligible = 1e-18;
  for (int cycle = 0; cycle < most_cycles; ++cycle) {
    double off = 0;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        const double element = std::abs(matrix[p * n + q]);
        off = std::max(off, element);
        if (element <= negligible * scale) continue;
        const Rotation rotation(matrix, n, p, q);
        rotation.turn_columns(matrix);
        rotation.turn_rows(matrix);
        rotation.turn_columns(vectors);
        matrix[p * n + q] = matrix[q * n + p] = 0;
      }
    }
    if (off <= negligible * scale) break;
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return matrix[a * n + a] > matrix[b * n + b]; });
  Eigen eigen;
  for (const std::size_t at : order) {
    eigen.values.push_back(matrix[at * n + at]);
    std::vector<double>& vector = eigen.vectors.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) vector[i] = vectors[i * n + at];
    const auto largest =
        std::max_element(vector.begin(), vector.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (*largest < 0)
      for (double& part : vector) part = -part;
  }
  return eigen;
}

std::vector<float> whitening_filters(const std::vector<double>& moments, Index side, Index out) {
  if (out > 2 * side)
    fail(Exit::usage, "a convolution of {} filters can't start by whitening patches of {} values ({} filters at most)",
         out, side, 2 * side);
  const Eigen eigen = eigen_of(moments, side);
  std::vector<float> filters;
  for (Index k = 0; k < out; ++k) {
    const auto at = static_cast<std::size_t>(k % side);
    const double factor = (k < side ? 1 : -1) / std::sqrt(std::max(eigen.values[at], 0.0) + whitening_epsilon);
    for (const double part : eigen.vectors[at]) filters.push_back(static_cast<float>(factor * part));
  }
  return filters;
}

}  // namespace convoy
