// SPDX-License-Identifier: Apache-2.0
// The kernels of a matrix rule: products against sums in double, the orthogonal matrix against the reference's, and
// what is gathered and updated against the formulas.
#include "backend/cuda/kernels/orthogonal.hpp"

#include <cmath>

#include "backend/cuda/filter_copies.hpp"
#include "backend/cuda/matrix_pass.hpp"
#include "cuda/kernels/bench.hpp"
#include "network/models.hpp"
#include "support/formula.hpp"
#include "support/matrix_plan.hpp"
#include "support/reference/orthogonal.hpp"

namespace convoy::cuda {
namespace {

using reference::norm_of;

/// Roundings of fp32.
constexpr double unit = 0x1p-24;

class OrthogonalKernel : public EveryStorage {};
INSTANTIATE_TEST_SUITE_P(All, OrthogonalKernel, testing::Values(Storage::f32), name_of_storage);
class MatrixUpdate : public EveryStorage {};
CONVOY_EVERY_STORAGE(MatrixUpdate);

/// Of one element, of less and more than a tile on either side, of several tiles, wide and tall.
const std::vector<std::vector<Index>> shapes{{1, 1}, {63, 65}, {64, 64, 3, 3}, {576, 64}, {130, 17}, {200, 24, 3, 3}};

/// Matrices by formula, and the device memory of their products.
struct Matrices {
  Plan plan = matrix_plan(shapes, 0);
  std::vector<UpdatePiece> pieces = make_copy_layout(plan, Precision::fp32).pieces;
  MatrixTables tables = make_matrix_tables(plan, pieces);
  Values values = formula_values("x", plan.table.parameters.count);
  OrthogonalArgs args;

  explicit Matrices(Bench& bench, std::int32_t apply = 1) {
    Values gathered(static_cast<std::size_t>(tables.gathered_floats), 0.0), squares(pieces.size(), 0.0);
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const UpdateMatrix& m = tables.matrices.at(static_cast<std::size_t>(pieces[p].matrix));
      const Index count = Index{pieces[p].ks} * pieces[p].channels * pieces[p].rs;
      for (Index i = pieces[p].begin; i < pieces[p].begin + count; ++i) {
        const double x = values[static_cast<std::size_t>(i)];
        const Index at = i - m.begin;
        gathered[static_cast<std::size_t>(
            m.place(static_cast<int>(at / m.columns), static_cast<int>(at % m.columns)))] = x;
        squares[p] += x * x;
      }
    }
    args.matrices = bench.put(tables.matrices);
    args.count = static_cast<int>(tables.matrices.size());
    args.tiles = bench.put(tables.tiles);
    args.tile_count = static_cast<int>(tables.tiles.size());
    args.square_tiles = bench.put(tables.square_tiles);
    args.square_count = static_cast<int>(tables.square_tiles.size());
    args.x[0] = bench.floats(gathered);
    args.x[1] = bench.empty<float>(tables.gathered_floats);
    args.gram = bench.empty<float>(tables.square_floats);
    args.polynomial = bench.empty<float>(tables.square_floats);
    args.factors = bench.empty<float>(args.count);
    args.squares = bench.put(squares);
    args.apply = bench.put(std::vector<std::int32_t>{apply});
  }
  /// The orthogonal matrix of a weight, row by row as the weight.
  Values result(const Values& x, std::size_t matrix) const {
    const UpdateMatrix& m = tables.matrices[matrix];
    Values found;
    for (int r = 0; r < m.rows; ++r)
      for (int c = 0; c < m.columns; ++c) found.push_back(x[static_cast<std::size_t>(m.place(r, c))]);
    return found;
  }
};

struct Sides {
  Index rows, columns, inner;
};
/// Every element is added + alpha * sum left(row, k) right(k, column). Each of the sum's terms and additions rounds
/// once, and two products and an addition more: (inner + 3) u of the sum of the magnitudes.
template <class Found, class Left, class Right, class Added>
void expect_product(const Sides& sides, const Found& found, const Left& left, const Right& right, double alpha,
                    const Added& added) {
  for (Index r = 0; r < sides.rows; ++r)
    for (Index c = 0; c < sides.columns; ++c) {
      double sum = 0, magnitudes = 0;
      for (Index k = 0; k < sides.inner; ++k) {
        const double term = left(r, k) * right(k, c);
        sum += term;
        magnitudes += std::abs(term);
      }
      const double more = added(r, c), bound = std::abs(alpha) * magnitudes + std::abs(more);
      ASSERT_NEAR(found(r, c), alpha * sum + more, static_cast<double>(sides.inner + 3) * unit * bound)
          << "at " << r << ", " << c;
    }
}

/// What the last iteration read and wrote is still there.
TEST_P(OrthogonalKernel, EveryProductEqualsSumsInDouble) {
  in_all_orders([&] {
    Bench bench;
    const Matrices all(bench);
    expect_success(orthogonalise(all.args, bench.stream()));
    const Values x = bench.floats(all.args.x[1 - orthogonal_place], all.tables.gathered_floats),
                 next = bench.floats(all.args.x[orthogonal_place], all.tables.gathered_floats),
                 gram = bench.floats(all.args.gram, all.tables.square_floats),
                 polynomial = bench.floats(all.args.polynomial, all.tables.square_floats);
    for (const UpdateMatrix& m : all.tables.matrices) {
      const auto of = [](const Values& block, Index begin, Index stride) {
        return [&block, begin, stride](Index r, Index c) {
          return block[static_cast<std::size_t>(begin + r * stride + c)];
        };
      };
      const auto of_x = of(x, m.x, m.length), of_gram = of(gram, m.square, m.side),
                 of_p = of(polynomial, m.square, m.side);
      const Index side = m.side, length = m.length;
      SCOPED_TRACE(m.rows);
      expect_product(
          {side, side, length}, of_gram, of_x, [&](Index k, Index c) { return of_x(c, k); }, 1,
          [](Index, Index) { return 0.0; });
      expect_product({side, side, side}, of_p, of_gram, of_gram, static_cast<double>(Muon::c),
                     [&](Index r, Index c) { return static_cast<double>(Muon::b) * of_gram(r, c); });
      expect_product({side, length, side}, of(next, m.x, m.length), of_p, of_x, 1,
                     [&](Index r, Index c) { return static_cast<double>(Muon::a) * of_x(r, c); });
      if (HasFatalFailure()) return;
      const Index rows = std::min(m.rows, m.columns), columns = std::max(m.rows, m.columns);
      for (Index r = 0; r < side; ++r) {
        for (Index c = 0; c < side; ++c) ASSERT_EQ(of_gram(r, c), of_gram(c, r)) << r << ", " << c;
        for (Index c = 0; c < length; ++c)
          ASSERT_TRUE((r < rows && c < columns) || of(next, m.x, m.length)(r, c) == 0) << r << ", " << c;
      }
    }
  });
}

/// The bound of unit/backend/muon_test.cpp: an iteration enlarges an error of X at most 4-fold, X is off by some u of
/// its norm at first, and again by each iteration: by less than 4^5 u of the norm of the result.
TEST_P(OrthogonalKernel, EqualsTheReferenceWithTheSameBitsInAnyOrder) {
  std::vector<Values> wanted;
  Values first;
  in_all_orders([&] {
    Bench bench;
    const Matrices all(bench);
    expect_success(orthogonalise(all.args, bench.stream()));
    const Values x = bench.floats(all.args.x[orthogonal_place], all.tables.gathered_floats);
    if (first.empty()) first = x;
    EXPECT_TRUE(x == first);
    for (std::size_t m = 0; m < shapes.size(); ++m) {
      const Range range = all.plan.table.rows[m].range;
      if (wanted.size() == m)
        wanted.push_back(reference::orthogonal({all.values.begin() + range.begin, all.values.begin() + range.end()},
                                               static_cast<std::size_t>(shapes[m][0])));
      Values off = all.result(x, m);
      for (std::size_t i = 0; i < off.size(); ++i) off[i] -= wanted[m][i];
      EXPECT_LE(norm_of(off), 1024 * unit * norm_of(wanted[m])) << "matrix " << m;
    }
  });
}

TEST_P(OrthogonalKernel, ASkippedUpdateWritesNothing) {
  in_all_orders([&] {
    Bench bench;
    const Matrices all(bench, 0);
    const Values before = bench.floats(all.args.x[0], all.tables.gathered_floats);
    expect_success(orthogonalise(all.args, bench.stream()));
    EXPECT_EQ(bench.floats(all.args.x[0], all.tables.gathered_floats), before);
    for (const Values& untouched :
         {bench.floats(all.args.x[1], all.tables.gathered_floats), bench.floats(all.args.factors, all.args.count)})
      for (const double v : untouched) ASSERT_TRUE(std::isnan(v)) << "was never written";
  });
}

/// Every matrix of a network, and what is none.
TEST_P(MatrixUpdate, GathersAndUpdatesByTheFormulas) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 10;
  PlanSpec plan_spec;
  plan_spec.weight_decay = 0.5F;
  Plan plan = make_plan(build_graph(spec), plan_spec);
  plan.table.rows[2].trainable = false;
  plan.table.rows[5].rate_multiplier = 2;
  const CopyLayout layout = make_copy_layout(plan, storage() == Storage::f16    ? Precision::fp16
                                                   : storage() == Storage::bf16 ? Precision::bf16
                                                                                : Precision::fp32);
  std::vector<UpdatePiece> pieces = layout.pieces;
  const MatrixTables tables = make_matrix_tables(plan, pieces);
  const Index count = plan.table.parameters.count;
  UpdateVerdict verdict{1, 0.5F, {}};
  Muon::prepare({{0.75, 0.875, 0x1p-10, 0.625, 1, 0.5}}, 1, verdict.numbers);
  StepNumbers step;
  step.learning_rate = 0.125F;
  const Values w = formula_values("w", count), g = formula_values("g", count),
               slots = formula_values("m", 2 * count, 0.5, 0.5);
  in_all_orders([&] {
    Bench bench;
    UpdateArgs args;
    args.values = bench.floats(w);
    args.slots = bench.floats(slots);
    args.slot_floats = count;
    args.gradients = bench.floats(g);
    args.copies = bench.put(std::vector<std::uint8_t>(static_cast<std::size_t>(layout.elements * bytes_of(storage()))));
    args.storage = storage();
    args.pieces = bench.put(pieces);
    args.count = static_cast<int>(pieces.size());
    args.step = bench.put(std::vector<StepNumbers>{step});
    args.verdict = bench.put(std::vector<UpdateVerdict>{verdict});
    args.matrices = bench.put(tables.matrices);
    args.gathered = bench.empty<float>(tables.gathered_floats);
    auto* const squares = bench.empty<double>(args.count);
    expect_success(gather_matrices(Rule::muon, args, squares, bench.stream()));
    expect_success(update(Rule::muon, args, bench.stream()));
    const Values new_w = bench.floats(args.values, count), new_slots = bench.floats(args.slots, 2 * count),
                 gathered = bench.floats(args.gathered, tables.gathered_floats),
                 copies = bench.elements(args.copies, layout.elements, storage());
    const auto new_squares = bench.get(squares, args.count);
    int matrices = 0;
    for (std::size_t r = 0; r < plan.table.rows.size(); ++r) {
      const Parameter& row = plan.table.rows[r];
      SCOPED_TRACE(row.name);
      UpdateFactors factors{0.125F * row.rate_multiplier, row.decay, 0.5F, {}};
      std::copy(std::begin(verdict.numbers), std::end(verdict.numbers), factors.numbers);
      const UpdateMatrix* const matrix =
          row.is_matrix() ? &tables.matrices.at(static_cast<std::size_t>(matrices++)) : nullptr;
      const Index columns = row.range.count / row.shape.front();
      if (matrix != nullptr)
        factors.ratio = static_cast<float>(
            Muon::matrix_ratio(factors.numbers, static_cast<double>(row.shape.front()), static_cast<double>(columns)));
      Values want, got;
      double sum = 0;
      for (Index i = 0; i < row.range.count; ++i) {
        const auto at = static_cast<std::size_t>(row.range.begin + i), second = at + static_cast<std::size_t>(count);
        float weight = static_cast<float>(w[at]), m = static_cast<float>(slots[at]),
              v = static_cast<float>(slots[second]);
        if (matrix != nullptr) {
          const float x = Muon::gathered(factors, static_cast<float>(g[at]), m, v);
          const auto place =
              matrix->place(static_cast<int>(i / matrix->columns), static_cast<int>(i % matrix->columns));
          EXPECT_NEAR(gathered[static_cast<std::size_t>(place)], static_cast<double>(x), 0x1p-22);
          weight = Muon::matrix_update(factors, weight, x);
          sum += static_cast<double>(x) * static_cast<double>(x);
        } else if (row.trainable) {
          weight = Muon::update(factors, weight, static_cast<float>(g[at]), m, v);
        }
        for (const float value : {weight, m, v}) want.push_back(static_cast<double>(value));
        got.insert(got.end(), {new_w[at], new_slots[at], new_slots[second]});
      }
      // Each number takes a few roundings, fewer with fused multiply-adds.
      expect_close(got, want, 0x1p-21, "weights and slots");
      if (matrix != nullptr) {
        double found = 0;
        for (int p = matrix->first_piece; p < matrix->first_piece + matrix->piece_count; ++p)
          found += new_squares[static_cast<std::size_t>(p)];
        EXPECT_NEAR(found, sum, 1e-6 * sum);
      }
      const FilterCopy& copy = layout.rows[r];
      for (Index k = 0; k < copy.k && copy.offset >= 0; ++k)
        for (Index c = 0; c < copy.c; ++c)
          for (Index s = 0; s < copy.rs; ++s)
            ASSERT_EQ(copies[static_cast<std::size_t>(copy.offset + (k * copy.rs + s) * copy.stored_c + c)],
                      row.trainable
                          ? rounded(new_w[static_cast<std::size_t>(row.range.begin + (k * copy.c + c) * copy.rs + s)],
                                    storage())
                          : 0)
                << "copy";
    }
    EXPECT_EQ(matrices, static_cast<int>(tables.matrices.size()));
    EXPECT_GE(matrices, 6);
  });
}

}  // namespace
}  // namespace convoy::cuda
