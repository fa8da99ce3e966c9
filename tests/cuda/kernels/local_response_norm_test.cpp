// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/local_response_norm.hpp"

#include "cuda/kernels/bench.hpp"
#include "network/graph.hpp"
#include "support/formula.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cuda {
namespace {

class LocalResponseTest : public EveryStorage {};
CONVOY_EVERY_STORAGE(LocalResponseTest);

TEST_P(LocalResponseTest, ForwardAndGradient) {
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

}  // namespace
}  // namespace convoy::cuda
