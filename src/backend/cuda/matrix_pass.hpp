// SPDX-License-Identifier: Apache-2.0
// What a matrix rule does before the update: it gathers its matrices and makes them orthogonal (ADR 0049).
#pragma once
#include <vector>

#include "backend/cuda/kernels/update.hpp"
#include "backend/cuda/runtime/queue.hpp"
#include "network/plan.hpp"

namespace convoy::cuda {

/// The matrices of a plan, and the tiles of their products: blocks that take longest come first.
struct MatrixTables {
  std::vector<UpdateMatrix> matrices;
  std::vector<ProductTile> tiles, square_tiles;  ///< as OrthogonalArgs
  Index gathered_floats = 0, square_floats = 0;  ///< of one of the blocks in which the matrices lie
};
/// Numbers the pieces of the matrices.
MatrixTables make_matrix_tables(const Plan& plan, std::vector<UpdatePiece>& pieces);

class MatrixPass {
 public:
  MatrixPass(const Plan& plan, std::vector<UpdatePiece>& pieces)
      : tables_(make_matrix_tables(plan, pieces)), pieces_(static_cast<Index>(pieces.size())) {}

  Index bytes() const { return lay_out(nullptr).bytes; }
  /// `memory`: on 64 bytes.
  void bind(Queue& queue, std::byte* memory);
  /// Behind decide_update. Sets what update() reads of matrices.
  void launch(Rule rule, UpdateArgs& args, Queue& queue) const;

 private:
  struct Places {
    OrthogonalArgs args;
    double* squares = nullptr;
    UpdateMatrix* matrices = nullptr;
    ProductTile *tiles = nullptr, *square_tiles = nullptr;
    Index bytes = 0;
  };
  /// Null: only counts.
  Places lay_out(std::byte* memory) const;

  MatrixTables tables_;
  Index pieces_ = 0;
  Places places_;
};

}  // namespace convoy::cuda
