// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/convolution.hpp"

#include "backend/cuda/operations/conversion.hpp"
#include "cuda/kernels/norm_case.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class ConvolutionRows : public EveryStorage {};
CONVOY_EVERY_STORAGE(ConvolutionRows);

TEST_P(ConvolutionRows, CopiesRowsWithBiasAndCast) {
  in_all_orders([&] {
    for (const Storage to : {Storage::f32, storage()}) {
      Bench bench;
      constexpr Index rows = 37, columns = 10, from_columns = 16, to_columns = 12;
      Values from = formula_values("from", rows * from_columns);
      const Values bias = formula_values("bias", columns);
      RowsCopy copy;
      copy.rows = rows;
      copy.columns = columns;
      copy.from = bench.elements(from, storage());
      copy.from_columns = from_columns;
      copy.from_storage = storage();
      copy.to = bench.empty_elements(rows * to_columns, to);
      copy.to_columns = to_columns;
      copy.to_storage = to;
      copy.bias = bench.floats(bias);
      expect_success(copy_rows(copy, bench.stream()));
      Values want(static_cast<std::size_t>(rows * to_columns), 0.0);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) want[r * to_columns + c] = from[r * from_columns + c] + bias[c];
      expect_close(bench.elements(copy.to, rows * to_columns, to), want, epsilon_of(to) + 0x1p-23, "rows");
    }
  });
}

TEST_P(ConvolutionRows, SumsColumnsForTheBias) {
  in_all_orders([&] {
    for (const Size size : sizes) {
      Bench bench;
      const Index columns = size.channels - size.channels / 8;  // the last ones are padding
      Values dy = formula_values("dy", size.rows * size.channels);
      BiasGradient gradient{storage(), size.rows, columns, size.channels};
      gradient.dy = bench.elements(dy, storage());
      const Reduction reduction(bench, size, 1);
      gradient.place = reduction.place;
      gradient.loss_scale = bench.put(std::vector<float>{4});
      gradient.db = bench.empty<float>(columns);
      expect_success(bias_gradient(gradient, bench.stream()));
      Values want = by_channel(size, [&](std::size_t i) { return dy[i] / 4; });
      want.resize(static_cast<std::size_t>(columns));
      expect_close(bench.floats(gradient.db, columns), want,
                   0x1p-24 * (8 + 4 * std::sqrt(static_cast<double>(size.rows))), "db");
      reduction.expect_ready(bench);
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
