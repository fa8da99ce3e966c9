// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/kernels/special.hpp"

#include "backend/rules/dropout.hpp"
#include "cuda/kernels/bench.hpp"
#include "network/graph.hpp"
#include "support/formula.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cuda {
namespace {

class Special : public EveryStorage {};
CONVOY_EVERY_STORAGE(Special);

TEST_P(Special, LocalResponseAndItsGradient) {
  in_all_orders([&] {
    for (const int size : {5, 2, 1}) {
      for (const Index channels : {16, 3, 300}) {
        Bench bench;
        Node node;
        node.attributes = LocalResponseNorm{size, 0.5F, 0.75F, 2};
        Tensor x = formula_tensor("x", Tensor(2, channels, 3, 2)), dy = formula_tensor("dy", x);
        const LocalResponse norm{storage(), 12, channels, size, 0.5F, 0.75F, 2};
        const void* const device_x = bench.tensor(x, storage());
        void* const device_dy = bench.tensor(dy, storage());
        void* const y = bench.empty_elements(x.count(), storage());
        expect_success(local_response(norm, device_x, y, bench.stream()));
        expect_success(local_response_backward(norm, device_x, device_dy, device_dy, bench.stream()));
        const reference::Output want = reference::forward(node, {{&x}, {}});
        expect_close(bench.tensor(y, x, storage()).values, want.y.values, epsilon() + 0x1p-21, "y");
        const reference::Gradient gradient = reference::backward(node, {{&x}, {}}, want, dy);
        expect_close(bench.tensor(device_dy, x, storage()).values, gradient.dx[0].values, epsilon() + 0x1p-20, "dx");
      }
    }
  });
}

TEST_P(Special, DropoutFollowsTheRule) {
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
