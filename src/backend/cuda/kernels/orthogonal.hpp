// SPDX-License-Identifier: Apache-2.0
// The matrix products of a matrix rule, of all matrices of an update at once (ADR 0049).
#pragma once
#include "backend/cuda/kernels/types.hpp"
#include "core/portable.hpp"
#include "optim/muon.hpp"

namespace convoy::cuda {

/// A block computes a tile of so many rows and columns of a product, with all of its terms.
constexpr int product_tile = 64;
/// Terms of a product that a block fetches at once.
constexpr int product_depth = 16;
constexpr Index whole_tiles(Index n) { return (n + product_tile - 1) / product_tile * product_tile; }

/// A weight that becomes orthogonal. Among the gathered it lies with its shorter side as rows, so transposed if it has
/// more rows than columns; `side` rows of `length`. What the matrix doesn't fill is 0.
struct UpdateMatrix {
  Index begin = 0;                                ///< of its first weight, in the values block
  std::int32_t rows = 1, columns = 1;             ///< of the weight
  std::int32_t side = 0, length = 0;              ///< of what is gathered: whole tiles
  std::int32_t first_piece = 0, piece_count = 0;  ///< as UpdatePiece
  Index x = 0, square = 0;                        ///< of its first number among the gathered; of a side x side matrix

  CONVOY_HD bool is_tall() const { return rows > columns; }
  /// Where the element of a row and column of the weight lies among the gathered.
  CONVOY_HD Index place(std::int32_t row, std::int32_t column) const {
    return x + (is_tall() ? static_cast<Index>(column) * length + row : static_cast<Index>(row) * length + column);
  }
};

/// A tile of a matrix's product, counted in tiles.
struct ProductTile {
  std::int32_t matrix = 0, row = 0, column = 0;
};

struct OrthogonalArgs {
  const UpdateMatrix* matrices = nullptr;
  int count = 0;
  const ProductTile* tiles = nullptr;  ///< of side x length
  int tile_count = 0;
  const ProductTile* square_tiles = nullptr;  ///< of side x side: those on the diagonal and below
  int square_count = 0;
  float* x[2] = {};  ///< the gathered, and as much memory
  float *gram = nullptr, *polynomial = nullptr;
  const double* squares = nullptr;      ///< of each piece of a matrix
  float* factors = nullptr;             ///< of each matrix: written
  const std::int32_t* apply = nullptr;  ///< 0: nothing happens
};

/// Muon's iterations of Newton and Schulz: x[orthogonal_place] becomes about U V^T of x[0] = U S V^T, in fp32. Each sum
/// has one thread and one order, which the shape alone decides.
cudaError_t orthogonalise(const OrthogonalArgs& args, cudaStream_t stream);
inline constexpr int orthogonal_place = Muon::iterations % 2;

}  // namespace convoy::cuda
