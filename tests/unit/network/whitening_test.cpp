// SPDX-License-Identifier: Apache-2.0
#include "network/whitening.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.hpp"
#include "support/formula.hpp"

namespace convoy {
namespace {

TEST(Eigenpairs, OfTwoByTwoByHand) {
  const Eigenpairs pairs = eigenpairs_of({2, 1, 1, 2}, 2);
  EXPECT_NEAR(pairs.values[0], 3, 1e-15);
  EXPECT_NEAR(pairs.values[1], 1, 1e-15);
  const double half = std::sqrt(0.5);
  EXPECT_NEAR(pairs.vectors[0][0], half, 1e-15);
  EXPECT_NEAR(pairs.vectors[0][1], half, 1e-15);
  EXPECT_NEAR(pairs.vectors[1][0] * pairs.vectors[1][1], -0.5, 1e-15);
}

/// a = sum of x x^T, which is symmetric and has no negative eigenvalue.
std::vector<double> some_matrix(Index side) {
  std::vector<double> matrix(static_cast<std::size_t>(side * side), 0);
  for (int n = 0; n < 20; ++n) {
    const reference::Values x = formula_values("row" + std::to_string(n), side);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) matrix[i * x.size() + j] += x[i] * x[j];
  }
  return matrix;
}

TEST(Eigenpairs, VectorsAreOrthonormalAndGiveTheMatrix) {
  constexpr Index side = 12;
  const std::vector<double> matrix = some_matrix(side);
  const Eigenpairs pairs = eigenpairs_of(matrix, side);
  double trace = 0;
  for (std::size_t i = 0; i < 12; ++i) trace += matrix[i * 12 + i];
  for (const std::vector<double>& vector : pairs.vectors)
    EXPECT_GT(*std::max_element(vector.begin(), vector.end()), -*std::min_element(vector.begin(), vector.end()));
  for (std::size_t i = 0; i + 1 < 12; ++i) EXPECT_GE(pairs.values[i], pairs.values[i + 1]);
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 12; ++j) {
      double product = 0, element = 0;
      for (std::size_t k = 0; k < 12; ++k) {
        product += pairs.vectors[i][k] * pairs.vectors[j][k];
        element += pairs.values[k] * pairs.vectors[k][i] * pairs.vectors[k][j];
      }
      // A few hundred roundings by 2^-53 of numbers up to the trace.
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-13);
      EXPECT_NEAR(element, matrix[i * 12 + j], 1e-13 * trace);
    }
}

TEST(Whitening, FiltersMakeComponentsOfVarianceOneAndTheirNegatives) {
  constexpr Index side = 12;
  const std::vector<double> moments = some_matrix(side);
  const std::vector<float> filters = whitening_filters(moments, side, 24);
  ASSERT_EQ(filters.size(), 288U);
  const Eigenpairs pairs = eigenpairs_of(moments, side);
  const auto response = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i)
      for (std::size_t j = 0; j < 12; ++j)
        sum +=
            static_cast<double>(filters[a * 12 + i]) * moments[i * 12 + j] * static_cast<double>(filters[b * 12 + j]);
    return sum;
  };
  for (std::size_t a = 0; a < 12; ++a) {
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(filters[(a + 12) * 12 + i], -filters[a * 12 + i]);
    // The filters are rounded to float, to whose 2^-24 the ratio of the eigenvalues adds.
    const double bound = 1e-6 * pairs.values[0] / (pairs.values[a] + whitening_epsilon);
    EXPECT_NEAR(response(a, a), pairs.values[a] / (pairs.values[a] + whitening_epsilon), bound);
    if (a > 0) {
      EXPECT_NEAR(response(a, 0), 0, 1e-6 * std::sqrt(pairs.values[0] / (pairs.values[a] + whitening_epsilon)));
    }
  }
  EXPECT_EQ(whitening_filters(moments, side, 5), std::vector<float>(filters.begin(), filters.begin() + 60));
  expect_error(Exit::usage, {"25 filters", "24 filters at most"}, [&] { whitening_filters(moments, side, 25); });
}

}  // namespace
}  // namespace convoy
