// SPDX-License-Identifier: Apache-2.0
// The sums over an image that batch norm's gradients are made of, on the CPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/operations/group_loops.hpp"
#include "support/formula.hpp"
#include "support/rounding.hpp"
#include "unit/backend/images.hpp"

namespace convoy::cpu {
namespace {

// In u of the sum of absolute terms. Of a run of 32 terms each goes through at most 31 additions in fp32, and the
// result is rounded once: 32. A product adds the roundings of the difference and of the product: 34. One more is for
// terms in u^2 and for the additions in double. A single chain of fp32 additions is off by several hundred u for the
// constant terms below.
constexpr double sum_bound = 33 * fp32_unit, product_bound = 35 * fp32_unit;

struct Sums {
  std::vector<float> sums, products[2];

  explicit Sums(const TensorLayout& layout)
      : sums(static_cast<std::size_t>(images * layout.padded_channels())), products{sums, sums} {}
  bool operator==(const Sums&) const = default;
};

/// Even channels have constant terms, whose roundings all point the same way; the others' terms have both signs.
void expect_sums(Index height, Index width, Index channels, bool blocked) {
  const TensorLayout layout = layout_of(height, width, channels, blocked);
  const Index pixels = layout.pixels(), padded = layout.padded_channels();
  Images gradient{layout}, first{layout}, second{layout}, out{layout};
  std::vector<float> mean0(static_cast<std::size_t>(padded)), mean1(mean0);
  for (Index c = 0; c < channels; ++c) {
    mean0[static_cast<std::size_t>(c)] = 0.4F;
    mean1[static_cast<std::size_t>(c)] = -0.3F;
    for (Index n = 0; n < images; ++n)
      for (Index p = 0; p < pixels; ++p) {
        const float dice = c % 2 == 0 ? 0.1F : formula_uniform("gradient", n * pixels + p);
        gradient.at(n, c, p) = dice;
        first.at(n, c, p) = c % 2 == 0 ? 1.7F : formula_uniform("first", n * pixels + p);
        second.at(n, c, p) = c % 2 == 0 ? 0.6F : formula_uniform("second", n * pixels + p);
      }
  }
  const auto run = [&](Sums& to, Index pieces) {
    AccumulateArgs args{.layout = layout, .gradient = gradient.values.data(), .out = out.values.data(), .norms = 2};
    args.sums = to.sums.data();
    args.norm[0] = {.value = first.values.data(), .mean = mean0.data(), .products = to.products[0].data()};
    args.norm[1] = {.value = second.values.data(), .mean = mean1.data(), .products = to.products[1].data()};
    const Index units = images * units_per_image(layout);
    const GroupKernels& kernels = kernels_for<GroupKernels>(find_instruction_set().isa);
    for (Index t = 0; t < pieces; ++t) kernels.accumulate(args, units * t / pieces, units * (t + 1) / pieces);
  };
  Sums got(layout), in_pieces(layout);
  run(got, 1);
  run(in_pieces, 3);
  EXPECT_EQ(got, in_pieces) << "as three threads share the units";
  for (Index n = 0; n < images; ++n)
    for (Index c = 0; c < channels; ++c) {
      double exact[3] = {}, size[3] = {};
      const auto add = [&](int which, double term) {
        exact[which] += term;
        size[which] += std::abs(term);
      };
      for (Index p = 0; p < pixels; ++p) {
        const auto g = static_cast<double>(gradient.at(n, c, p));
        const auto centred = [&](Images& x, const std::vector<float>& mean) {
          return static_cast<double>(x.at(n, c, p)) - static_cast<double>(mean[static_cast<std::size_t>(c)]);
        };
        add(0, g);
        add(1, g * centred(first, mean0));
        add(2, g * centred(second, mean1));
      }
      const auto row = static_cast<std::size_t>(n * padded + c);
      SCOPED_TRACE(fmt::format("{} x {}, {} channels, {}, image {}, channel {}", height, width, channels,
                               blocked ? "blocked" : "nhwc", n, c));
      EXPECT_NEAR(got.sums[row], exact[0], sum_bound * size[0]);
      EXPECT_NEAR(got.products[0][row], exact[1], product_bound * size[1]);
      EXPECT_NEAR(got.products[1][row], exact[2], product_bound * size[2]);
    }
}

TEST(NormGradients, HoldOverManyPixels) {
  for (const bool blocked : {false, true})
    for (const Index channels : {7, 64}) {
      expect_sums(1, 1, channels, blocked);
      expect_sums(7, 7, channels, blocked);
      expect_sums(112, 112, channels, blocked);  // ResNet's stem at 224 px: 12,544 terms
    }
}

}  // namespace
}  // namespace convoy::cpu
