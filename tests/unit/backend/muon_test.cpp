// SPDX-License-Identifier: Apache-2.0
// Muon on the CPU. updater_test.cpp compares it with PyTorch's, and resumes it.
#include "optim/muon.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "backend/cpu/orthogonal.hpp"
#include "network/models.hpp"
#include "support/formula.hpp"
#include "support/matrix_plan.hpp"
#include "support/reference/orthogonal.hpp"
#include "unit/backend/updater_bench.hpp"

namespace convoy::cpu {
namespace {

using reference::norm_of;
using reference::orthogonal;
using reference::Values;

constexpr double momentum = 0.875, decay = 0.125;

/// The formula in double.
struct Reference {
  std::size_t rows;
  Values w, m = Values(w.size(), 0.0);

  void step(const Values& g, double rate) {
    Values x(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      m[i] = momentum * m[i] + (1 - momentum) * g[i];
      x[i] = (1 - momentum) * g[i] + momentum * m[i];
    }
    x = orthogonal(x, rows);
    const double ratio = 0.2 * std::sqrt(static_cast<double>(std::max(rows, x.size() / rows)));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * (ratio * x[i] + decay * w[i]);
  }
};

Plan plan_of(const std::vector<std::vector<Index>>& shapes) { return matrix_plan(shapes, decay); }

/// `steps` random gradients for each matrix; the result must be within `tolerance` of its norm.
void expect_reference(const std::vector<std::vector<Index>>& shapes, int steps, double tolerance) {
  const Plan plan = plan_of(shapes);
  UpdaterBench bench(plan, {.rule = Rule::muon});
  bench.set(bench.block_, bench.layout_.values, formula_values("w", plan.table.parameters.count));
  std::vector<Reference> references;
  for (const Parameter& row : plan.table.rows)
    references.push_back({static_cast<std::size_t>(row.shape[0]), bench.values(row.range)});
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const Range range = plan.table.rows[i].range;
      const Values g = formula_values(fmt::format("g{}/{}", i, step), range.count);
      bench.set(bench.gradients_, range, g);
      references[i].step(g, 0x1p-9);
    }
    bench.step(0x1p-9F, {{0.9, 0.999, 1e-8, momentum, 1, 1}});
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    Values off = bench.values(plan.table.rows[i].range);
    for (std::size_t k = 0; k < off.size(); ++k) off[k] -= references[i].w[k];
    EXPECT_LE(norm_of(off), tolerance * norm_of(references[i].w)) << "matrix " << i;
  }
}

/// Wide, tall, of one row, and of a convolution; all small, so that each is one thread's. The iterations enlarge an
/// error of the normalised matrix X at most 4^5-fold in the directions of its singular values near 0, where the
/// polynomial's derivative is 3.4445, and less elsewhere. X, of norm 1, is off by some 2^-24, and so is each iteration:
/// an orthogonal matrix of norm sqrt(r) is off by less than 4^5 * 8 * 2^-24 = 5e-4. A step adds 2^-9 * ratio (at most
/// 1.4) of that to the weights, whose norm is above sqrt(r): if all 100 errors had one sign, 1.4e-4. Of either sign,
/// they add up to a tenth of that, and few directions are near 0: 1e-5.
TEST(Muon, EqualsAReferenceInDoubleFor100Steps) {
  expect_reference({{12, 5, 3, 3}, {40, 10}, {1, 30}, {9, 1, 5, 5}, {16, 16}}, 100, 1e-5);
}

/// All threads share such a matrix, and its products have several tiles in both directions. As above, for one step.
TEST(Muon, EqualsAReferenceInDoubleForLargeMatrices) {
  ASSERT_GT((MatrixShape{130, 600}.macs()), 1 << 26);
  expect_reference({{130, 24, 5, 5}, {700, 130}}, 1, 4e-6);
}

/// The singular values come between 0.6 and 1.3 (they oscillate around 1, by design), whatever the size of the
/// gradient.
TEST(Muon, UpdatesAreNearlyOrthogonal) {
  constexpr Index rows = 8, columns = 50;
  for (const float scale : {1e-4F, 1.0F, 1e4F}) {
    std::vector<float> x, scratch(static_cast<std::size_t>(orthogonal_floats({rows, columns})));
    for (const double v : formula_values("x", rows * columns)) x.push_back(scale * static_cast<float>(v));
    ASSERT_TRUE(orthogonalise({rows, columns}, x.data(), scratch.data()));
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < rows; ++j) {
        double product = 0;
        for (Index k = 0; k < columns; ++k)
          product += static_cast<double>(x[static_cast<std::size_t>(i * columns + k)]) *
                     x[static_cast<std::size_t>(j * columns + k)];
        // Between 0.6^2 and 1.3^2 are all eigenvalues, so all diagonal entries; others are at most half the span.
        if (i == j) {
          EXPECT_GT(product, 0.36);
          EXPECT_LT(product, 1.69);
        } else {
          EXPECT_LT(std::abs(product), 0.665);
        }
      }
  }
}

TEST(Muon, AZeroGradientMovesNothingButTheDecay) {
  const Plan plan = plan_of({{4, 6}});
  UpdaterBench bench(plan, {.rule = Rule::muon});
  const Values start = formula_values("w", 24);
  bench.set(bench.block_, plan.table.rows[0].range, start);
  bench.step(0.5F, {{0.9, 0.999, 1e-8, momentum, 1, 1}});
  const Values moved = bench.values(plan.table.rows[0].range);
  for (std::size_t i = 0; i < moved.size(); ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(moved[i]), static_cast<float>(start[i] * (1 - 0.5 * decay)));
}

/// The authors leave the layer that makes the classes to AdamW, and so biases and norms: their first step is of the
/// learning rate's size, whatever the gradient's.
TEST(Muon, LeavesTheLastLayerBiasesAndNormsToAdamW) {
  GraphSpec spec;
  spec.model = "resnet8";
  spec.classes = 10;
  const Plan plan = make_plan(build_graph(spec), {});
  UpdaterBench bench(plan, {.rule = Rule::muon});
  bench.set(bench.gradients_, plan.table.parameters, formula_values("g", plan.table.parameters.count));
  bench.step(0.25F, {{0.9, 0.999, 1e-8, momentum, 1, 0.5}});
  int matrices = 0;
  for (const Parameter& row : plan.table.rows) {
    const Values moved = bench.values(row.range);
    const bool others = row.name.starts_with("fc.") || row.kind != Kind::weight;
    matrices += others ? 0 : 1;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (others)
        ASSERT_NEAR(std::abs(moved[i]), 0.125, 1e-4) << row.name;
      else
        ASSERT_LT(std::abs(moved[i]), 0.25 * 1.3 * 0.2 * std::sqrt(576.0)) << row.name;
    }
    if (!others) {
      EXPECT_LT(norm_of(moved) / std::sqrt(static_cast<double>(row.shape[0])), 0.25 * 1.3 * 0.2 * std::sqrt(576.0));
    }
  }
  EXPECT_GE(matrices, 7);
}

/// With 1, 2 and 3 threads, for matrices that are shared and for those that aren't.
TEST(Muon, BitsDoNotDependOnTheNumberOfThreads) {
  const Plan plan = plan_of({{130, 24, 5, 5}, {64, 20, 3, 3}, {20, 30}, {700, 130}});
  const int most = omp_get_max_threads();
  std::vector<std::vector<float>> blocks;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    UpdaterBench bench(plan, {.rule = Rule::muon});
    bench.set(bench.gradients_, plan.table.parameters, formula_values("g", plan.table.parameters.count));
    bench.step(0.25F, {{0.9, 0.999, 1e-8, momentum, 1, 1}});
    blocks.push_back(bench.block_);
  }
  omp_set_num_threads(most);
  EXPECT_TRUE(blocks[0] == blocks[1]);
  EXPECT_TRUE(blocks[0] == blocks[2]);
  EXPECT_NE(blocks[0][0], 0);
}

}  // namespace
}  // namespace convoy::cpu
