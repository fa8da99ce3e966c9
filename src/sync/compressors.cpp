// SPDX-License-Identifier: Apache-2.0
#include "sync/compressors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "core/errors.hpp"
#include "core/wire.hpp"

namespace convoy {
namespace {

/// Of the four codes in a byte.
constexpr std::array<std::array<std::int8_t, 4>, 256> signs = [] {
  std::array<std::array<std::int8_t, 4>, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t code = byte >> (2 * i) & 3U;
      table[byte][i] = code == 1 ? std::int8_t{1} : code == 2 ? std::int8_t{-1} : std::int8_t{0};
    }
  return table;
}();

std::uint32_t magnitude(float value) { return bits_of_float(value) & 0x7fffffffU; }

void add_scaled(float factor, const float* from, float* to, Index n) {
  for (Index i = 0; i < n; ++i) to[i] += factor * from[i];
}

}  // namespace

void take_two_bits(float* values, Index n, float threshold, std::uint8_t* codes) {
  for (Index begin = 0; begin < n; begin += 4) {
    unsigned byte = 0;
    for (Index i = begin; i < std::min(begin + 4, n); ++i) {
      const float value = values[i];
      const unsigned code = value >= threshold ? 1U : value <= -threshold ? 2U : 0U;
      byte |= code << (2 * (i - begin));
      values[i] = value - (code == 1 ? threshold : code == 2 ? -threshold : 0.0F);
    }
    codes[begin / 4] = static_cast<std::uint8_t>(byte);
  }
}

void add_two_bits(const std::uint8_t* codes, Index n, std::int32_t* counts) {
  for (Index begin = 0; begin < n; begin += 4) {
    const auto& sign = signs[codes[begin / 4]];
    for (Index i = begin; i < std::min(begin + 4, n); ++i) counts[i] += sign[static_cast<std::size_t>(i - begin)];
  }
}

void take_largest(float* values, Index n, Index kept, std::uint32_t* places, float* largest, std::uint32_t* scratch) {
  require(kept > 0 && kept <= n, "as many of the largest values as there are");
  // Bits of magnitudes are ordered as the magnitudes are.
  for (Index i = 0; i < n; ++i) scratch[i] = magnitude(values[i]);
  std::nth_element(scratch, scratch + kept - 1, scratch + n, std::greater<>());
  const std::uint32_t least = scratch[kept - 1];
  Index equal = kept - std::count_if(scratch, scratch + kept, [&](std::uint32_t each) { return each > least; });
  Index found = 0;
  for (Index i = 0; i < n && found < kept; ++i) {
    const std::uint32_t own = magnitude(values[i]);
    if (own < least || (own == least && equal-- <= 0)) continue;
    places[found] = static_cast<std::uint32_t>(i);
    largest[found++] = std::exchange(values[i], 0.0F);
  }
}

void multiply_by_basis(const LowRank& shape, const float* matrix, const float* basis, float* left) {
  // A compiler may not reorder one sum, but it can keep sixteen in a register.
  constexpr Index lanes = 16;
  for (Index i = 0; i < shape.rows; ++i) {
    const float* row = matrix + i * shape.columns;
    for (Index j = 0; j < shape.rank; ++j) {
      const float* other = basis + j * shape.columns;
      std::array<float, lanes> sums{};
      const Index whole = shape.columns / lanes * lanes;
      for (Index k = 0; k < whole; k += lanes)
        for (Index l = 0; l < lanes; ++l) sums[static_cast<std::size_t>(l)] += row[k + l] * other[k + l];
      float sum = 0;
      for (const float each : sums) sum += each;
      for (Index k = whole; k < shape.columns; ++k) sum += row[k] * other[k];
      left[i * shape.rank + j] = sum;
    }
  }
}

void make_orthonormal(const LowRank& shape, float* left, double* columns) {
  constexpr double dependent = 1e-6;  // of a column's length before: what is left of it is rounding
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto rank = static_cast<std::size_t>(shape.rank);
  const auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t j = 0; j < rank; ++j) {
    double* const column = columns + j * rows;
    for (std::size_t i = 0; i < rows; ++i) column[i] = static_cast<double>(left[i * rank + j]);
    const double before = std::sqrt(dot(column, column));
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t other = 0; other < j; ++other) {
        const double* const before_it = columns + other * rows;
        const double along = dot(before_it, column);
        for (std::size_t i = 0; i < rows; ++i) column[i] -= along * before_it[i];
      }
    const double length = std::sqrt(dot(column, column));
    const double factor = length > dependent * before ? 1 / length : 0;
    for (std::size_t i = 0; i < rows; ++i) {
      column[i] *= factor;
      left[i * rank + j] = static_cast<float>(column[i]);
    }
  }
}

bool scale_to_one(float* values, Index n) {
  float largest = 0;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
  if (largest == 0) return false;
  const double factor = std::ldexp(1.0, -std::ilogb(largest));  // of the least float it is beyond float's range
  for (Index i = 0; i < n; ++i) values[i] = static_cast<float>(factor * static_cast<double>(values[i]));
  return true;
}

void multiply_by_left(const LowRank& shape, const float* matrix, const float* left, float* basis) {
  std::fill_n(basis, shape.rank * shape.columns, 0.0F);
  for (Index i = 0; i < shape.rows; ++i)
    for (Index j = 0; j < shape.rank; ++j)
      add_scaled(left[i * shape.rank + j], matrix + i * shape.columns, basis + j * shape.columns, shape.columns);
}

void add_product(const LowRank& shape, float factor, const float* left, const float* basis, float* matrix) {
  for (Index i = 0; i < shape.rows; ++i)
    for (Index j = 0; j < shape.rank; ++j)
      add_scaled(factor * left[i * shape.rank + j], basis + j * shape.columns, matrix + i * shape.columns,
                 shape.columns);
}

}  // namespace convoy
