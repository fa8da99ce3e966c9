// SPDX-License-Identifier: Apache-2.0
// Each compressor against a reference in double that is written out.
#include "sync/compressors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend/compression_layout.hpp"
#include "core/random.hpp"

namespace convoy {
namespace {

constexpr double u = 0x1p-24;  ///< of a rounding to float

std::vector<float> random_values(std::size_t n, std::uint64_t what) {
  Random random(7, Stream::synthetic, what);
  std::vector<float> values(n);
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

/// Multiples of 2^-8 and a threshold of 0.5: every sum is exact, so the residuals are, too.
TEST(TwoBits, SendsTheThresholdAndKeepsTheRest) {
  constexpr std::size_t n = 37;
  constexpr double threshold = 0.5;
  std::vector<float> residual(n, 0.0F);
  std::vector<double> expected(n, 0.0);
  std::vector<std::int32_t> counts(n, 0), expected_counts(n, 0);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::vector<float> gradient = random_values(n, step);
    std::vector<std::uint8_t> codes((n + 3) / 4, 0xff);
    for (std::size_t i = 0; i < n; ++i) {
      const float value = std::round(256 * gradient[i]) / 256;
      residual[i] += value;
      expected[i] += static_cast<double>(value);
      const int sent = expected[i] >= threshold ? 1 : expected[i] <= -threshold ? -1 : 0;
      expected[i] -= threshold * sent;
      expected_counts[i] += sent;
    }
    take_two_bits(residual.data(), n, static_cast<float>(threshold), codes.data());
    add_two_bits(codes.data(), n, counts.data());
  }
  EXPECT_EQ(std::vector<double>(residual.begin(), residual.end()), expected);
  EXPECT_EQ(counts, expected_counts);
  EXPECT_NE(std::count(counts.begin(), counts.end(), 0), static_cast<std::ptrdiff_t>(n));
}

TEST(TwoBits, SendsWhatIsExactlyTheThreshold) {
  std::vector<float> values{0.5F, -0.5F, 0.4999F, -0.4999F, 0.0F};
  std::vector<std::uint8_t> codes(2);
  take_two_bits(values.data(), 5, 0.5F, codes.data());
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{1 | 2 << 2, 0}));
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0.4999F, -0.4999F, 0}));
}

TEST(TopK, TakesTheLargestAndLeavesTheOthers) {
  constexpr std::size_t n = 1000, kept = 50;
  std::vector<float> values = random_values(n, 1);
  const std::vector<float> before = values;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(before[a]) > std::abs(before[b]); });
  order.resize(kept);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> places(kept), scratch(n);
  std::vector<float> largest(kept);
  take_largest(values.data(), n, kept, places.data(), largest.data(), scratch.data());
  EXPECT_EQ(std::vector<std::size_t>(places.begin(), places.end()), order);
  for (std::size_t i = 0; i < kept; ++i) EXPECT_EQ(largest[i], before[order[i]]);
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_EQ(values[i], std::binary_search(order.begin(), order.end(), i) ? 0.0F : before[i]) << i;
}

TEST(TopK, TakesTheFirstOfEqualOnes) {
  std::vector<float> values{1, -2, 2, 1, -1, 2};
  std::vector<std::uint32_t> places(4), scratch(6);
  std::vector<float> largest(4);
  take_largest(values.data(), 6, 4, places.data(), largest.data(), scratch.data());
  EXPECT_EQ(places, (std::vector<std::uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(largest, (std::vector<float>{1, -2, 2, 2}));
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 1, -1, 0}));
}

/// One step of PowerSGD: each function against its formula in double, from the floats that it is given. A sum of n
/// products that are rounded one after the other is off by at most (n + 1) u of the sum of their magnitudes.
TEST(PowerSgd, IsItsFormulas) {
  constexpr LowRank shape{.rows = 23, .columns = 45, .rank = 3};
  constexpr auto rows = static_cast<std::size_t>(shape.rows), columns = static_cast<std::size_t>(shape.columns),
                 rank = static_cast<std::size_t>(shape.rank);
  std::vector<float> matrix = random_values(rows * columns, 1), left(rows * rank), next(rank * columns, 9.0F);
  const std::vector<float> basis = random_values(rank * columns, 2), given = matrix;
  const auto product = [](const auto& a, const auto& b, std::size_t n, auto at_a, auto at_b, double& magnitudes) {
    double sum = magnitudes = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double each = static_cast<double>(a[at_a(k)]) * static_cast<double>(b[at_b(k)]);
      sum += each;
      magnitudes += std::abs(each);
    }
    return sum;
  };
  double magnitudes = 0;

  multiply_by_basis(shape, matrix.data(), basis.data(), left.data());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rank; ++j) {
      const double expected = product(
          matrix, basis, columns, [&](std::size_t k) { return i * columns + k; },
          [&](std::size_t k) { return j * columns + k; }, magnitudes);
      EXPECT_NEAR(static_cast<double>(left[i * rank + j]), expected, (columns + 1) * u * magnitudes);
    }

  // Classical Gram-Schmidt in double; random columns are far from dependent, so only the last rounding shows.
  std::vector<double> reference(left.begin(), left.end());
  for (std::size_t j = 0; j < rank; ++j) {
    std::vector<double> along(j, 0.0);
    for (std::size_t other = 0; other < j; ++other)
      for (std::size_t i = 0; i < rows; ++i) along[other] += reference[i * rank + other] * reference[i * rank + j];
    double squares = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t other = 0; other < j; ++other)
        reference[i * rank + j] -= along[other] * reference[i * rank + other];
      squares += reference[i * rank + j] * reference[i * rank + j];
    }
    for (std::size_t i = 0; i < rows; ++i) reference[i * rank + j] /= std::sqrt(squares);
  }
  std::vector<double> work(rows * rank);
  make_orthonormal(shape, left.data(), work.data());
  for (std::size_t i = 0; i < left.size(); ++i)
    EXPECT_NEAR(static_cast<double>(left[i]), reference[i], u * std::abs(reference[i]) + 1e-12);

  multiply_by_left(shape, matrix.data(), left.data(), next.data());
  for (std::size_t j = 0; j < rank; ++j)
    for (std::size_t k = 0; k < columns; ++k) {
      const double expected = product(
          left, matrix, rows, [&](std::size_t i) { return i * rank + j; },
          [&](std::size_t i) { return i * columns + k; }, magnitudes);
      EXPECT_NEAR(static_cast<double>(next[j * columns + k]), expected, (rows + 1) * u * magnitudes);
    }

  add_product(shape, -1, left.data(), next.data(), matrix.data());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < columns; ++k) {
      const double sent = product(
          left, next, rank, [&](std::size_t j) { return i * rank + j; }, [&](std::size_t j) { return j * columns + k; },
          magnitudes);
      const auto whole = static_cast<double>(given[i * columns + k]);
      EXPECT_NEAR(static_cast<double>(matrix[i * columns + k]), whole - sent,
                  (rank + 2) * u * (magnitudes + std::abs(whole)));
    }
}

/// A matrix of the rank that is sent is sent whole: what is left is rounding.
TEST(PowerSgd, SendsAMatrixOfItsRankWhole) {
  constexpr LowRank shape{.rows = 12, .columns = 30, .rank = 2};
  const std::vector<float> a = random_values(24, 1), b = random_values(60, 2), basis = random_values(60, 3);
  std::vector<float> matrix(360, 0.0F), left(24), next(60);
  add_product(shape, 1, a.data(), b.data(), matrix.data());
  multiply_by_basis(shape, matrix.data(), basis.data(), left.data());
  std::vector<double> work(24);
  make_orthonormal(shape, left.data(), work.data());
  multiply_by_left(shape, matrix.data(), left.data(), next.data());
  const double largest = static_cast<double>(*std::max_element(matrix.begin(), matrix.end()));
  add_product(shape, -1, left.data(), next.data(), matrix.data());
  // The columns of P = M Q are off by 31 u of magnitudes below 30 * 2; orthonormal ones by that times 1 / (the least
  // singular value of P), which is above 1 here, and the product sums 12 of them.
  for (const float rest : matrix) EXPECT_LT(std::abs(static_cast<double>(rest)), 12 * 31 * 60 * u * largest);
}

TEST(PowerSgd, AColumnThatDependsOnOthersBecomesZero) {
  constexpr LowRank shape{.rows = 3, .columns = 4, .rank = 3};
  std::vector<float> left{1, 2, 0, 0, 0, 0, 1, 2, 0};  // the second is twice the first, the third 0
  std::vector<double> work(9);
  make_orthonormal(shape, left.data(), work.data());
  const auto half = static_cast<float>(std::sqrt(0.5));
  EXPECT_EQ(left, (std::vector<float>{half, 0, 0, 0, 0, 0, half, 0, 0}));
}

/// By powers of two: from the largest floats, the least, and those between, digits stay.
TEST(PowerSgd, ScalesRowsToOne) {
  std::vector<float> large{0x1.8p127F, -0x1p120F}, small{0x1p-149F, 0x1p-148F, 0}, zeros(3, 0.0F);
  EXPECT_TRUE(scale_to_one(large.data(), 2));
  EXPECT_EQ(large, (std::vector<float>{1.5F, -0x1p-7F}));
  EXPECT_TRUE(scale_to_one(small.data(), 3));
  EXPECT_EQ(small, (std::vector<float>{0.5F, 1, 0}));
  EXPECT_FALSE(scale_to_one(zeros.data(), 3));
  EXPECT_EQ(zeros, std::vector<float>(3, 0.0F));
}

ParameterTable table_of(std::vector<Parameter> rows) {
  ParameterTable table;
  Index at = 0;
  for (Parameter& row : rows) {
    Index count = 1;
    for (const Index extent : row.shape) count *= extent;
    row.range = {at, count};
    at = align_floats(at + count);
  }
  table.rows = std::move(rows);
  table.parameters = {0, at};
  table.statistics = {at, 0};
  table.flags = {at, 2};
  table.exchange = {at + 16, 0};
  return table;
}

TEST(CompressionLayoutTest, LeavesVectorsAndWhatWouldGrow) {
  const ParameterTable table = table_of({{.name = "fc.weight", .shape = {10, 64}, .makes_classes = true},
                                         {.name = "fc.bias", .kind = Kind::bias, .shape = {10}},
                                         {.name = "small.weight", .shape = {4, 1, 2, 2}},
                                         {.name = "conv.weight", .shape = {16, 3, 3, 3}}});
  const CompressionLayout low = compression_layout(table, {.kind = Compression::power_sgd, .rank = 2});
  ASSERT_EQ(low.tensors.size(), 2U);
  EXPECT_EQ(low.tensors[0].name, "fc.weight");
  EXPECT_EQ(low.tensors[1].columns, 27);
  EXPECT_EQ(low.basis_floats, 2 * 64 + 64);                          // 2 x 27, up to a multiple of 16
  EXPECT_EQ(low.left_floats, 32 + 32);                               // 10 x 2 and 16 x 2
  EXPECT_EQ(low.plain, (std::vector<Range>{{640, 32}, {1104, 2}}));  // bias and small weight; tail
  EXPECT_EQ(low.plain_floats, 32 + 16);

  const CompressionLayout two = compression_layout(table, {.kind = Compression::two_bits});
  EXPECT_EQ(two.tensors.size(), 3U);
  EXPECT_EQ(two.message_bytes, 160 + 4 + 108);
  const CompressionLayout top = compression_layout(table, {.kind = Compression::top_k, .fraction = 0.01});
  EXPECT_EQ(top.message_bytes, 8 * (7 + 1 + 5));
  EXPECT_EQ(compression_layout(table, {}).plain, (std::vector<Range>{{0, table.flags.end()}}));
}

TEST(CompressionLayoutTest, FirstBasesAreOfFullRankAndOfTheNameAlone) {
  const ParameterTable table =
      table_of({{.name = "a.weight", .shape = {16, 40}}, {.name = "b.weight", .shape = {16, 40}}});
  const CompressionLayout layout = compression_layout(table, {.kind = Compression::power_sgd, .rank = 3});
  const std::vector<float> bases = first_bases(layout);
  std::vector<float> row(40);
  fill_basis_row(layout.tensors[1], 2, row.data());
  EXPECT_TRUE(std::equal(row.begin(), row.end(), bases.begin() + layout.tensors[1].basis.begin + 80));
  EXPECT_FALSE(std::equal(row.begin(), row.end(), bases.begin() + layout.tensors[0].basis.begin + 80));
  std::vector<float> columns(120);
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 3; ++j) columns[3 * i + j] = bases[40 * j + i];
  std::vector<double> work(120);
  make_orthonormal({.rows = 40, .columns = 0, .rank = 3}, columns.data(), work.data());
  for (std::size_t j = 0; j < 3; ++j) {
    double squares = 0;
    for (std::size_t i = 0; i < 40; ++i) squares += static_cast<double>(columns[3 * i + j] * columns[3 * i + j]);
    EXPECT_NEAR(squares, 1, 1e-5);  // none depends on the others
  }
}

}  // namespace
}  // namespace convoy
