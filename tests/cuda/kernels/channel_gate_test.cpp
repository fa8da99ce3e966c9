// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/channel_gate.hpp"

#include <cmath>

#include "backend/rules/gate.hpp"
#include "cuda/kernels/bench.hpp"
#include "support/formula.hpp"

namespace convoy::cuda {
namespace {

class ChannelGateTest : public EveryStorage {};
CONVOY_EVERY_STORAGE(ChannelGateTest);

/// Packs, an odd number of channels, more channels than a block takes; many pixels, and one.
TEST_P(ChannelGateTest, EqualsTheFormula) {
  in_all_orders([&] {
    for (const auto& [pixels, channels] : {std::pair{Index{150}, Index{16}}, {7, 5}, {1, 2056}, {40, 300}}) {
      for (const GateKind kind : {GateKind::sigmoid, GateKind::hard_sigmoid}) {
        SCOPED_TRACE(testing::Message() << pixels << " pixels, " << channels << " channels");
        Bench bench;
        const GatePass pass{storage(), 3, pixels, channels, kind};
        Values x = formula_values("x", 3 * pixels * channels), dy = formula_values("dy", 3 * pixels * channels),
               s = formula_values("s", 3 * channels, 5);
        void* const device_x = bench.elements(x, storage());  // rounds them
        void* const device_dy = bench.elements(dy, storage());
        void* const device_s = bench.elements(s, storage());
        void* const y = bench.empty_elements(3 * pixels * channels, storage());
        void* const dx = bench.empty_elements(3 * pixels * channels, storage());
        void* const ds = bench.empty_elements(3 * channels, storage());
        Values want_y = x, want_dx = dy, want_ds(s.size(), 0.0);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t at = i / static_cast<std::size_t>(pixels * channels) * static_cast<std::size_t>(channels) +
                                 i % static_cast<std::size_t>(channels);
          const auto number = static_cast<float>(s[at]);
          want_y[i] *= static_cast<double>(gate_value<FloatMath>(kind, number));
          want_dx[i] *= static_cast<double>(gate_value<FloatMath>(kind, number));
          want_ds[at] += dy[i] * x[i] * static_cast<double>(gate_slope<FloatMath>(kind, number));
        }
        expect_success(gate_channels(pass, device_x, device_s, y, bench.stream()));
        const GateGradients both{device_x, device_s, device_dy, dx, ds};
        expect_success(gate_channels_backward(pass, both, bench.stream()));
        expect_close(bench.elements(y, 3 * pixels * channels, storage()), want_y, epsilon(), "y");
        expect_close(bench.elements(dx, 3 * pixels * channels, storage()), want_dx, epsilon(), "dx");
        expect_close(bench.elements(ds, 3 * channels, storage()), want_ds, epsilon() + 0x1p-20, "ds");
        // One alone.
        void* const alone = bench.empty_elements(3 * channels, storage());
        GateGradients one = both;
        one.dx = nullptr;
        one.ds = alone;
        expect_success(gate_channels_backward(pass, one, bench.stream()));
        EXPECT_EQ(bench.elements(alone, 3 * channels, storage()), bench.elements(ds, 3 * channels, storage()));
        one.dx = dx;
        one.ds = nullptr;
        expect_success(gate_channels_backward(pass, one, bench.stream()));
      }
    }
  });
}

}  // namespace
}  // namespace convoy::cuda
