// SPDX-License-Identifier: Apache-2.0
// Sums over all pixels of an image on the CPU: global averages, and the gradient of a channel gate.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cpu/operations/channel_gate_loops.hpp"
#include "backend/cpu/operations/global_average_pool_loops.hpp"
#include "support/formula.hpp"
#include "support/instruction_sets.hpp"
#include "support/rounding.hpp"
#include "unit/backend/images.hpp"

namespace convoy::cpu {
namespace {

// In u of the sum of absolute terms. Two chains of 32 terms make a run: 31 additions and one that joins them; runs are
// added in double, the result is rounded once, and one more is for terms in u^2: 34. The gate's gradient adds the
// roundings of each product, of the slope 1/6 and of the product with it: 37. Two chains over the whole image
// are off by 160 u and 360 u for the equal terms below.
constexpr double average_bound = 34 * fp32_unit, gate_bound = 37 * fp32_unit;

/// Even channels have equal terms, whose roundings all point the same way; the others' terms have both signs.
void fill(Images& to, const std::string& name, float constant) {
  for (Index n = 0; n < images; ++n)
    for (Index c = 0; c < to.layout.channels; ++c)
      for (Index p = 0; p < to.layout.pixels(); ++p)
        to.at(n, c, p) = c % 2 == 0 ? constant : formula_uniform(name, n * to.layout.pixels() + p);
}

/// Runs the kernel on three ranges of units, as three threads would.
template <class Args>
void run(void (*kernel)(const Args&, std::int64_t, std::int64_t), const Args& args) {
  const Index units = images * units_per_image(args.x);
  for (Index t = 0; t < 3; ++t) kernel(args, units * t / 3, units * (t + 1) / 3);
}

/// Calls check(isa, layout, layout of the gate) for this machine's instruction sets, layouts and sizes.
template <class Check>
void for_layouts(const Check& check) {
  for (const Isa isa : isas()) {
    for (const bool blocked : {false, true})
      for (const Index channels : {7, 64})
        for (const Index size : {1, 7, 112}) {
          SCOPED_TRACE(fmt::format("{}, {} x {}, {} channels, {}", name_of(isa), size, size, channels,
                                   blocked ? "blocked" : "nhwc"));
          check(isa, layout_of(size, size, channels, blocked), layout_of(1, 1, channels, blocked));
        }
  }
}

TEST(PixelSums, AveragesHoldOverManyPixels) {
  for_layouts([&](Isa isa, const TensorLayout& layout, const TensorLayout&) {
    const GlobalAverageKernels& kernels = kernels_for<GlobalAverageKernels>(isa);
    Images x{layout};
    fill(x, "x", 0.1F);
    std::vector<float> means(static_cast<std::size_t>(images * layout.channels));
    run(kernels.forward, GlobalAverageArgs{.x = layout, .from = x.values.data(), .to = means.data()});
    const auto pixels = static_cast<double>(layout.pixels());
    for (Index n = 0; n < images; ++n)
      for (Index c = 0; c < layout.channels; ++c) {
        double exact = 0, size = 0;
        for (Index p = 0; p < layout.pixels(); ++p) {
          exact += static_cast<double>(x.at(n, c, p));
          size += std::abs(static_cast<double>(x.at(n, c, p)));
        }
        EXPECT_NEAR(means[static_cast<std::size_t>(n * layout.channels + c)], exact / pixels,
                    average_bound * size / pixels)
            << "image " << n << ", channel " << c;
      }
  });
}

TEST(PixelSums, GateGradientsHoldOverManyPixels) {
  for_layouts([&](Isa isa, const TensorLayout& layout, const TensorLayout& of_gate) {
    const GateKernels& kernels = kernels_for<GateKernels>(isa);
    Images x{layout}, dy{layout}, s{of_gate}, ds{of_gate};
    fill(x, "x", 1.7F);
    fill(dy, "dy", 0.1F);
    for (float& value : s.values) value = 0.5F;  // where hard_sigmoid rises by 1/6
    run(kernels.backward_gate, GateArgs{.x = layout,
                                        .s = of_gate,
                                        .gate = GateKind::hard_sigmoid,
                                        .from_x = x.values.data(),
                                        .from_s = s.values.data(),
                                        .dy = dy.values.data(),
                                        .to = ds.values.data()});
    for (Index n = 0; n < images; ++n)
      for (Index c = 0; c < layout.channels; ++c) {
        double exact = 0, size = 0;
        for (Index p = 0; p < layout.pixels(); ++p) {
          const double term = static_cast<double>(dy.at(n, c, p)) * static_cast<double>(x.at(n, c, p));
          exact += term;
          size += std::abs(term);
        }
        EXPECT_NEAR(ds.at(n, c, 0), exact / 6, gate_bound * size / 6) << "image " << n << ", channel " << c;
      }
  });
}

}  // namespace
}  // namespace convoy::cpu
