// SPDX-License-Identifier: Apache-2.0
// The CPU's own sums for groups.
#include <vector>

#include "backend/cpu/grouped/grouped.hpp"
#include "parity/kernel_test.hpp"
#include "support/rounding.hpp"

namespace convoy::cpu {
namespace {

class Grouped : public KernelTest {
 protected:
  Grouped() : KernelTest(Algorithm::grouped, make_grouped, [](const ConvolutionSpec&) { return true; }) {}
};

TEST_P(Grouped, Forward) { check_forward(); }
TEST_P(Grouped, Data) { check_data(); }
TEST_P(Grouped, Weights) { check_weights(); }
TEST_P(Grouped, BitsDontDependOnThreads) { check_bits({Direction::forward, Direction::data, Direction::weights}); }

INSTANTIATE_TEST_SUITE_P(
    Shapes, Grouped,
    testing::Values(KernelCase{"depthwise", convolution(32, 32, 32, 3, 1, 1), 2, 7, 7},
                    KernelCase{"depthwise_tail_bias", convolution(24, 24, 24, 3, 1, 1, true), 2, 5, 9},
                    KernelCase{"depthwise_strided", convolution(20, 20, 20, 3, 2, 1), 1, 8, 9},
                    KernelCase{"depthwise_5x5", convolution(16, 16, 16, 5, 1, 2), 2, 5, 9},
                    KernelCase{"depthwise_5x5_strided", convolution(33, 33, 33, 5, 2, 2), 1, 9, 14},
                    KernelCase{"depthwise_7x7", convolution(16, 16, 16, 7, 1, 3), 1, 7, 15},
                    KernelCase{"depthwise_11x11_stride_4", convolution(16, 16, 16, 11, 4, 2), 1, 16, 19},
                    KernelCase{"depthwise_no_pad", convolution(16, 16, 16, 3, 1, 0), 1, 3, 29},
                    KernelCase{"depthwise_much_pad", convolution(16, 16, 16, 3, 1, 4), 1, 3, 2},
                    KernelCase{"depthwise_skips", convolution(16, 16, 16, 2, 3, 0), 1, 9, 8},
                    KernelCase{"depthwise_1x1_strided", convolution(16, 16, 16, 1, 2, 0), 2, 6, 5},
                    KernelCase{"pairs", convolution(40, 40, 20, 3, 1, 1, true), 1, 7, 7},
                    KernelCase{"fours", convolution(32, 32, 8, 3, 1, 1), 2, 7, 7},
                    KernelCase{"fours_strided_tail", convolution(20, 20, 5, 3, 2, 1, true), 2, 5, 9},
                    KernelCase{"fours_5x5", convolution(16, 16, 4, 5, 2, 2), 1, 10, 11},
                    KernelCase{"eights", convolution(64, 64, 8, 3, 1, 1), 1, 5, 9},
                    KernelCase{"eights_strided_tail", convolution(24, 24, 3, 3, 2, 1), 1, 7, 7},
                    KernelCase{"sixteens", convolution(48, 48, 3, 3, 1, 1, true), 1, 7, 7},
                    KernelCase{"sixteens_strided", convolution(32, 32, 2, 3, 2, 1), 2, 6, 9},
                    KernelCase{"thirty_twos", convolution(64, 64, 2, 3, 1, 1), 1, 5, 6},
                    KernelCase{"threes", convolution(12, 12, 4, 3, 1, 1), 1, 5, 6},
                    KernelCase{"twenty_fours", convolution(48, 48, 2, 3, 2, 1), 1, 5, 6},
                    KernelCase{"more_results", convolution(16, 32, 16, 3, 1, 1, true), 1, 6, 5},
                    KernelCase{"fewer_results", convolution(32, 16, 16, 3, 1, 1), 1, 6, 5},
                    KernelCase{"sixteen_results_of_six", convolution(18, 48, 3, 3, 1, 1), 1, 5, 5},
                    KernelCase{"eight_to_sixteen", convolution(24, 48, 3, 3, 1, 1), 1, 5, 5},
                    KernelCase{"one_group", convolution(5, 19, 1, 3, 1, 1, true), 1, 6, 5},
                    KernelCase{"rows_only", rectangle(40, 10, 5, 1, 2, 2, 0), 1, 7, 6},
                    KernelCase{"columns_only", rectangle(16, 16, 1, 7, 1, 0, 3), 1, 6, 9},
                    KernelCase{"bands", convolution(16, 16, 16, 3, 1, 1), 1, 80, 70},
                    KernelCase{"bands_strided", convolution(16, 16, 4, 3, 2, 1), 1, 81, 90}),
    name_of_case);

/// Equal terms, whose roundings all point the same way: 50,176 for each weight and 50,176 for the bias. Products add up
/// in fp32 for 256 pixels at most, each with a rounding for itself and one for its addition, then in double; the result
/// is rounded once, and one more is for terms in u^2: 514 u. A single chain is off by thousands of u here.
TEST(GroupedSums, HoldOverManyPixels) {
  constexpr Index size = 224, channels = 16;
  constexpr double bound = 514 * fp32_unit;
  for (const int groups : {1, 4, 16}) {
    for (const Isa isa : isas()) {
      SCOPED_TRACE(testing::Message() << groups << " groups, " << name_of(isa));
      ConvolutionSpec spec{.direction = Direction::weights, .algorithm = Algorithm::grouped};
      spec.shape = {.images = 1,
                    .in = channels,
                    .out = channels,
                    .height = size,
                    .width = size,
                    .groups = groups,
                    .bias = true,
                    .format = MemoryFormat::nhwc};
      const auto kernel = make_grouped(isa, spec);
      const std::vector<float> x(size * size * channels, 1.7F), dy(x.size(), 0.1F);
      const Index inputs = channels / groups;
      std::vector<float> weights(static_cast<std::size_t>(channels * inputs * 9)), bias(channels);
      Block packed(kernel->packed_bytes() / 4, untouched),
          scratch(kernel->scratch_bytes() / 4, std::numeric_limits<float>::quiet_NaN());
      ASSERT_TRUE(kernel->execute({.source = x.data(),
                                   .packed = packed.data(),
                                   .bias = bias.data(),
                                   .result = dy.data(),
                                   .scratch = scratch.data()}));
      kernel->unpack(packed.data(), weights.data());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto inside = [](std::size_t tap) { return static_cast<double>(tap == 1 ? size : size - 1); };
        const double exact = inside(i / 3 % 3) * inside(i % 3) * static_cast<double>(1.7F) * static_cast<double>(0.1F);
        ASSERT_NEAR(weights[i], exact, bound * exact) << "weight " << i;
      }
      for (const float sum : bias)
        ASSERT_NEAR(sum, size * size * static_cast<double>(0.1F), bound * static_cast<double>(sum));
      // A second tile of the batch: the first one's sum was rounded once, and this sum of both is: 3 u of a tile's.
      const std::vector<float> first = weights;
      ASSERT_TRUE(kernel->execute({.source = x.data(),
                                   .packed = packed.data(),
                                   .bias = bias.data(),
                                   .result = dy.data(),
                                   .scratch = scratch.data(),
                                   .add = true}));
      kernel->unpack(packed.data(), weights.data());
      for (std::size_t i = 0; i < weights.size(); ++i)
        ASSERT_NEAR(weights[i], 2 * static_cast<double>(first[i]), 3.001 * fp32_unit * static_cast<double>(first[i]))
            << "weight " << i;
    }
  }
}

}  // namespace
}  // namespace convoy::cpu
