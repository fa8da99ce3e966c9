// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/dropout.hpp"

#include "backend/rules/dropout.hpp"
#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class DropoutTest : public EveryStorage {};
CONVOY_EVERY_STORAGE(DropoutTest);

TEST_P(DropoutTest, FollowsTheRule) {
  in_all_orders([&] {
    Bench bench;
    Tensor x = formula_tensor("x", Tensor(3, 5, 4, 2), 1);
    StepNumbers step;
    step.seed = 7;
    step.step = 11;
    std::vector<SampleRow> rows(3);
    for (std::size_t i = 0; i < 3; ++i) rows[i].position = static_cast<Index>(100 - i);
    DropoutPass pass{storage(), 3, 8, 5, 8, 0.4F, 6};
    pass.step = bench.put(std::vector<StepNumbers>{step});
    pass.rows = bench.put(rows);
    pass.x = bench.tensor(x, storage(), 8);
    pass.y = bench.empty_elements(3 * 8 * 8, storage());
    expect_success(dropout(pass, bench.stream()));
    const DropoutRule rule = DropoutRule::of(0.4F);
    Tensor want = x;
    Index dropped = 0;
    for (Index i = 0; i < 3; ++i) {
      const std::uint64_t key = dropout_sample_key(dropout_key(7, 11, 6), 100 - i);
      for (Index e = 0; e < 40; ++e) {
        const double factor = static_cast<double>(rule.factor(key, e));
        want.values[static_cast<std::size_t>(i * 40 + e)] *= factor;
        dropped += factor == 0 ? 1 : 0;
      }
    }
    EXPECT_GT(dropped, 30);
    EXPECT_LT(dropped, 66);
    expect_close(bench.tensor(pass.y, x, storage(), 8).values, want.values, epsilon() + 0x1p-23, "y");
  });
}

}  // namespace
}  // namespace convoy::cuda
