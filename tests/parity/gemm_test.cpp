// SPDX-License-Identifier: Apache-2.0
// The CPU's own gradients of weights as products over pixels.
#include "backend/cpu/gemm/weight_gradient.hpp"

#include <cmath>
#include <vector>

#include "parity/kernel_test.hpp"
#include "support/rounding.hpp"

namespace convoy::cpu {
namespace {

class Gemm : public KernelTest {
 protected:
  Gemm()
      : KernelTest(Algorithm::gemm, make_gemm,
                   [](const ConvolutionSpec& s) { return gemm_fits(s.shape, s.direction); }) {}
};

TEST_P(Gemm, Weights) { check_weights(); }
TEST_P(Gemm, BitsDontDependOnThreads) { check_bits({Direction::weights}); }

INSTANTIATE_TEST_SUITE_P(Shapes, Gemm,
                         testing::Values(KernelCase{"pointwise", convolution(32, 48, 1, 1, 1, 0), 2, 7, 7},
                                         KernelCase{"pointwise_tails", convolution(21, 37, 1, 1, 1, 0), 3, 5, 9},
                                         KernelCase{"pointwise_few_channels", convolution(3, 5, 1, 1, 1, 0), 1, 4, 3},
                                         KernelCase{"pointwise_rounds", convolution(17, 33, 1, 1, 1, 0), 5, 13, 17},
                                         KernelCase{"pointwise_one_pixel", convolution(40, 16, 1, 1, 1, 0), 1, 1, 1},
                                         KernelCase{"pointwise_strided", convolution(24, 32, 1, 1, 2, 0), 2, 9, 8},
                                         KernelCase{"pointwise_padded", convolution(16, 18, 1, 1, 1, 1), 2, 3, 4},
                                         KernelCase{"pointwise_wide", convolution(320, 16, 1, 1, 1, 0), 2, 3, 3},
                                         KernelCase{"squares", convolution(16, 32, 1, 3, 1, 1), 2, 7, 7},
                                         KernelCase{"squares_strided", convolution(20, 40, 1, 3, 2, 1), 2, 8, 9},
                                         KernelCase{"squares_rounds", convolution(16, 19, 1, 3, 2, 1), 2, 31, 37},
                                         KernelCase{"squares_no_pad", convolution(16, 16, 1, 3, 2, 0), 1, 9, 9},
                                         KernelCase{"squares_much_pad", convolution(16, 16, 1, 3, 1, 4), 1, 3, 2},
                                         KernelCase{"squares_skip", convolution(16, 16, 1, 2, 3, 0), 1, 9, 8},
                                         KernelCase{"fives", convolution(18, 33, 1, 5, 1, 2), 2, 6, 5},
                                         KernelCase{"sevens_stride_4", convolution(16, 16, 1, 7, 4, 3), 1, 16, 19},
                                         KernelCase{"rows_only", rectangle(33, 1, 7, 1, 1, 3, 0), 2, 7, 6},
                                         KernelCase{"columns_only", rectangle(16, 1, 1, 7, 1, 0, 3), 1, 6, 9}),
                         name_of_case);

ConvolutionShape points(Index channels, Index size, MemoryFormat format) {
  return {.images = 1,
          .in = channels,
          .out = channels,
          .height = size,
          .width = size,
          .kernel = 1,
          .kernel_w = 1,
          .pad = 0,
          .pad_w = 0,
          .format = format};
}

/// 50,176 equal terms for each weight, whose roundings all point the same way: chains of 256 in fp32, each term with
/// one rounding, and their sums in fp32. That is within 452 u (u = 2^-24) of the exact sum; one chain was off by 5,404
/// u.
TEST(GemmSums, AreSumsOfShortChains) {
  constexpr Index size = 224, channels = 16;
  constexpr float x_value = 1.7F, dy_value = 0.1F;
  float sum = 0;
  for (Index chain = 0; chain < size * size / 256; ++chain) {
    float part = 0;
    for (int i = 0; i < 256; ++i) part = std::fma(dy_value, x_value, part);
    sum += part;
  }
  constexpr double exact = size * size * static_cast<double>(x_value) * static_cast<double>(dy_value);
  ASSERT_NEAR(sum, exact, 452 * fp32_unit * exact);
  for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
    for (const int threads : {1, 3}) {
      for (const Isa isa : isas()) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << name_of(isa));
        ConvolutionSpec spec{.direction = Direction::weights, .algorithm = Algorithm::gemm, .threads = threads};
        spec.shape = points(channels, size, format);
        const auto kernel = make_gemm(isa, spec);
        Block x(size * size * channels, x_value), dy(size * size * channels, dy_value),
            packed(kernel->packed_bytes() / 4, untouched),
            scratch(kernel->scratch_bytes() / 4, std::numeric_limits<float>::quiet_NaN());
        std::vector<float> weights(channels * channels);
        ASSERT_TRUE(kernel->execute(
            {.source = x.data(), .packed = packed.data(), .result = dy.data(), .scratch = scratch.data()}));
        kernel->unpack(packed.data(), weights.data());
        for (const float weight : weights) ASSERT_EQ(weight, sum);
      }
    }
  }
}

/// Where the rule changes.
TEST(GemmRule, TakesWhatPays) {
  const auto pays = [](Isa isa, Index in, Index out, Index size, TileSums sums, int kernel = 1) {
    ConvolutionShape shape = points(in, size, MemoryFormat::nhwc);
    shape.out = out;
    shape.kernel = shape.kernel_w = kernel;
    shape.pad = shape.pad_w = kernel / 2;
    return gemm_pays(isa, shape, sums);
  };
  for (const TileSums sums : {TileSums::none, TileSums::some}) {
    EXPECT_TRUE(pays(Isa::avx2, 128, 128, 32, sums));
    EXPECT_FALSE(pays(Isa::avx2, 128, 127, 32, sums)) << "gathering takes too long";
    EXPECT_FALSE(pays(Isa::avx2, 512, 512, 33, sums)) << "a map of 1,089 results";
    EXPECT_TRUE(pays(Isa::avx2, 48, 48, 16, sums));
    EXPECT_FALSE(pays(Isa::avx2, 47, 48, 16, sums));
    EXPECT_FALSE(pays(Isa::avx2, 48, 48, 17, sums));
    EXPECT_TRUE(pays(Isa::avx2, 32, 32, 112, sums, 3));
    EXPECT_FALSE(pays(Isa::avx2, 31, 64, 112, sums, 3));
  }
  for (const Isa isa : {Isa::avx512, Isa::avx512_bf16}) {
    EXPECT_FALSE(pays(isa, 1024, 2048, 7, TileSums::none));
    EXPECT_TRUE(pays(isa, 48, 48, 8, TileSums::some));
    EXPECT_FALSE(pays(isa, 48, 48, 9, TileSums::some)) << "a map of 81 results";
    EXPECT_TRUE(pays(isa, 512, 1024, 16, TileSums::some)) << "2 MB";
    EXPECT_FALSE(pays(isa, 512, 1023, 16, TileSums::some));
    EXPECT_FALSE(pays(isa, 512, 1024, 17, TileSums::some));
  }
}

TEST(GemmRule, TakesOnlyWhatFits) {
  const ConvolutionShape shape = points(128, 7, MemoryFormat::nhwc);
  EXPECT_TRUE(gemm_fits(shape, Direction::weights));
  EXPECT_FALSE(gemm_fits(shape, Direction::forward));
  EXPECT_FALSE(gemm_fits(shape, Direction::data));
  const auto unfit = [&](auto change) {
    ConvolutionShape other = shape;
    change(other);
    return !gemm_fits(other, Direction::weights) && !gemm_pays(Isa::avx2, other, TileSums::some);
  };
  EXPECT_TRUE(unfit([](ConvolutionShape& s) { s.groups = 2; }));
  EXPECT_TRUE(unfit([](ConvolutionShape& s) { s.bias = true; }));
  EXPECT_TRUE(unfit([](ConvolutionShape& s) { s.reads_plain = true; }));
  EXPECT_TRUE(unfit([](ConvolutionShape& s) { s.storage = Storage::bf16; }));
}

}  // namespace
}  // namespace convoy::cpu
