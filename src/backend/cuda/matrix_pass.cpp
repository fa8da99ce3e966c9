// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/matrix_pass.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

std::int32_t narrow(Index n) {
  require(n <= std::numeric_limits<std::int32_t>::max() - product_tile, "a matrix of more than 2^31 rows or columns");
  return static_cast<std::int32_t>(n);
}

/// The matrices by the number of terms in their products, most first: blocks that take longest begin first.
template <class Terms>
std::vector<std::int32_t> longest_first(const std::vector<UpdateMatrix>& matrices, const Terms& terms) {
  std::vector<std::int32_t> order(matrices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return terms(matrices[static_cast<std::size_t>(a)]) > terms(matrices[static_cast<std::size_t>(b)]);
  });
  return order;
}

/// Hands out one block of memory, each part on 64 bytes; without memory it only counts.
struct Parts {
  std::byte* memory = nullptr;
  Index bytes = 0;

  template <class T>
  T* take(Index count) {
    T* const at = memory != nullptr ? reinterpret_cast<T*>(memory + bytes) : nullptr;
    bytes += (count * static_cast<Index>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
};

}  // namespace

MatrixTables make_matrix_tables(const Plan& plan, std::vector<UpdatePiece>& pieces) {
  MatrixTables tables;
  std::vector<UpdateMatrix>& matrices = tables.matrices;
  auto piece = pieces.begin();
  for (const Parameter& row : plan.table.rows) {
    const auto first = piece;
    while (piece != pieces.end() && row.range.contains(piece->begin)) ++piece;
    if (!row.is_matrix()) continue;
    UpdateMatrix matrix;
    matrix.begin = row.range.begin;
    matrix.rows = narrow(row.shape.front());
    matrix.columns = narrow(row.range.count / row.shape.front());
    matrix.side = narrow(whole_tiles(std::min(matrix.rows, matrix.columns)));
    matrix.length = narrow(whole_tiles(std::max(matrix.rows, matrix.columns)));
    matrix.first_piece = first->first_piece;
    matrix.piece_count = first->piece_count;
    matrix.x = tables.gathered_floats;
    matrix.square = tables.square_floats;
    tables.gathered_floats += Index{matrix.side} * matrix.length;
    tables.square_floats += Index{matrix.side} * matrix.side;
    for (auto one = first; one != piece; ++one) one->matrix = static_cast<std::int32_t>(matrices.size());
    matrices.push_back(matrix);
  }
  for (const std::int32_t m : longest_first(matrices, [](const UpdateMatrix& one) { return one.side; })) {
    const UpdateMatrix& matrix = matrices[static_cast<std::size_t>(m)];
    for (std::int32_t r = 0; r < matrix.side / product_tile; ++r)
      for (std::int32_t c = 0; c < matrix.length / product_tile; ++c) tables.tiles.push_back({m, r, c});
  }
  for (const std::int32_t m : longest_first(matrices, [](const UpdateMatrix& one) { return one.length; })) {
    const UpdateMatrix& matrix = matrices[static_cast<std::size_t>(m)];
    for (std::int32_t r = 0; r < matrix.side / product_tile; ++r)
      for (std::int32_t c = 0; c <= r; ++c) tables.square_tiles.push_back({m, r, c});
  }
  return tables;
}

MatrixPass::Places MatrixPass::lay_out(std::byte* memory) const {
  Parts parts{memory};
  Places to;
  OrthogonalArgs& args = to.args;
  args.count = static_cast<int>(tables_.matrices.size());
  args.tile_count = static_cast<int>(tables_.tiles.size());
  args.square_count = static_cast<int>(tables_.square_tiles.size());
  for (float*& x : args.x) x = parts.take<float>(tables_.gathered_floats);
  args.gram = parts.take<float>(tables_.square_floats);
  args.polynomial = parts.take<float>(tables_.square_floats);
  args.factors = parts.take<float>(args.count);
  args.squares = to.squares = parts.take<double>(pieces_);
  args.matrices = to.matrices = parts.take<UpdateMatrix>(args.count);
  args.tiles = to.tiles = parts.take<ProductTile>(args.tile_count);
  args.square_tiles = to.square_tiles = parts.take<ProductTile>(args.square_count);
  to.bytes = parts.bytes;
  return to;
}

void MatrixPass::bind(Queue& queue, std::byte* memory) {
  places_ = lay_out(memory);
  const auto put = [&](auto* to, const auto& table) {
    queue.upload_now(to, table.data(), static_cast<Index>(table.size() * sizeof(table[0])));
  };
  put(places_.matrices, tables_.matrices);
  put(places_.tiles, tables_.tiles);
  put(places_.square_tiles, tables_.square_tiles);
}

void MatrixPass::launch(Rule rule, UpdateArgs& args, Queue& queue) const {
  if (tables_.matrices.empty()) return;
  OrthogonalArgs products = places_.args;
  products.apply = &args.verdict->apply;
  args.matrices = places_.matrices;
  args.gathered = products.x[0];
  // What no matrix fills must be 0, also after a gradient that overflowed.
  queue.clear(args.gathered, tables_.gathered_floats * static_cast<Index>(sizeof(float)));
  check(gather_matrices(rule, args, places_.squares, queue.stream()), "launch of the matrices' gathering");
  check(orthogonalise(products, queue.stream()), "launch of the matrices' products");
  args.gathered = products.x[orthogonal_place];
}

}  // namespace convoy::cuda
