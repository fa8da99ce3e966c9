// SPDX-License-Identifier: Apache-2.0
// What one replica does to one tensor before it travels, in host memory. Sums are in a fixed order, so the bits depend
// on the values alone.
#pragma once
#include <cstdint>

#include "core/types.hpp"

namespace convoy {

/// Two bits a value, the first in the lowest: 1 where the value is at least `threshold`, 2 where it is at most
/// -threshold, else 0. Takes +-threshold from what is sent; the rest stays. (n + 3) / 4 bytes.
void take_two_bits(float* values, Index n, float threshold, std::uint8_t* codes);
/// counts += +1 for code 1, -1 for code 2. `n`: a multiple of 4, or the end of a tensor.
void add_two_bits(const std::uint8_t* codes, Index n, std::int32_t* counts);

/// The `kept` values of largest magnitude in the order of their places, of equal ones the first; they become 0.
/// `scratch`: n numbers.
void take_largest(float* values, Index n, Index kept, std::uint32_t* places, float* largest, std::uint32_t* scratch);

/// A tensor of rows x columns as a product of low rank, left x basis: left is rows x rank, basis rank x columns. All
/// are stored row after row.
struct LowRank {
  Index rows = 0, columns = 0, rank = 0;
};
/// left = matrix x basis^T.
void multiply_by_basis(const LowRank& shape, const float* matrix, const float* basis, float* left);
/// The columns of `left` become orthonormal, from the first on (Gram-Schmidt twice, in double). One that depends on
/// those before it becomes 0. `columns`: rank x rows numbers to work with.
void make_orthonormal(const LowRank& shape, float* left, double* columns);
/// values are multiplied by the power of two that brings the largest magnitude into [1, 2), so no digit is lost.
/// Returns false where all are 0.
bool scale_to_one(float* values, Index n);
/// basis = left^T x matrix.
void multiply_by_left(const LowRank& shape, const float* matrix, const float* left, float* basis);
/// matrix += factor x left x basis.
void add_product(const LowRank& shape, float factor, const float* left, const float* basis, float* matrix);

}  // namespace convoy
