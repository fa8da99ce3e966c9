// SPDX-License-Identifier: Apache-2.0
// The CPU's own sums for groups, kernel by kernel: all directions, layouts, storages and instruction sets of this
// machine, also where a network would take other kernels. Values are small whole numbers: products and sums stay below
// 2^24, so fp32 makes no error in any order, and a result in bf16 is the exact one rounded once.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "backend/cpu/grouped/grouped.hpp"
#include "parity/placed.hpp"
#include "support/allocations.hpp"
#include "support/reference/operations.hpp"
#include "support/rounding.hpp"

namespace convoy::cpu {
namespace {

struct Case {
  const char* name;
  Convolution spec;
  Index images, height, width;
};

class Grouped : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    const Convolution& s = c.spec;
    weights_ = whole_numbers("w", s.out * s.in / s.groups * s.kernel * s.s());
    bias_ = whole_numbers("b", s.out);
    x_ = whole_numbers("x", Tensor(c.images, s.in, c.height, c.width));
    const reference::Operands operands{.x = {&x_}, .parameters = {&weights_, &bias_}};
    y_ = reference::forward(s, operands);
    dy_ = whole_numbers("dy", Tensor::like(y_.y));
    gradient_ = reference::backward(s, operands, y_, dy_);
  }

  static std::vector<float> floats(const Values& values) { return {values.begin(), values.end()}; }

  /// Calls check(spec) for layouts, storages and numbers of threads; `plain`: also for a source in n c h w.
  template <class Check>
  void for_each_way(Direction direction, const Check& check) {
    const Case& c = GetParam();
    const Convolution& s = c.spec;
    for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
      for (const Storage storage : {Storage::f32, Storage::bf16}) {
        for (const bool plain : {false, true}) {
          if (plain && (storage == Storage::bf16 || direction == Direction::data)) continue;
          for (const int threads : {1, 3}) {
            ConvolutionSpec spec{.direction = direction, .algorithm = Algorithm::grouped, .threads = threads};
            spec.shape = {.images = c.images,
                          .in = s.in,
                          .out = s.out,
                          .height = c.height,
                          .width = c.width,
                          .kernel = s.kernel,
                          .kernel_w = s.s(),
                          .stride = s.stride,
                          .pad = s.pad,
                          .pad_w = s.pad_s(),
                          .groups = s.groups,
                          .bias = s.bias,
                          .reads_plain = plain,
                          .format = format,
                          .storage = storage};
            SCOPED_TRACE(testing::Message() << (format == MemoryFormat::blocked ? "blocked" : "nhwc")
                                            << (storage == Storage::bf16 ? " bf16" : " fp32") << (plain ? " plain" : "")
                                            << ", " << threads << " threads");
            for (const Isa isa : isas()) {
              SCOPED_TRACE(name_of(isa));
              check(isa, spec);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }

  static Placed placed(const Tensor& like, const ConvolutionSpec& spec, bool plain) {
    const bool blocked = spec.shape.format == MemoryFormat::blocked;
    const Placed::Order order = plain ? Placed::Order::plain : (blocked ? Placed::Order::blocked : Placed::Order::nhwc);
    return {like, order, spec.shape.storage};
  }
  /// Scratch that shows what is read before it is written.
  static Block scratch_of(const ConvolutionKernel& kernel) {
    return {kernel.scratch_bytes() / 4, std::numeric_limits<float>::quiet_NaN()};
  }

  Values weights_, bias_;
  Tensor x_, dy_;
  reference::Output y_;
  reference::Gradient gradient_;
};

TEST_P(Grouped, Forward) {
  for_each_way(Direction::forward, [&](Isa isa, const ConvolutionSpec& spec) {
    const auto kernel = make_grouped(isa, spec);
    Placed x = placed(x_, spec, spec.shape.reads_plain), y = placed(y_.y, spec, false);
    x.write(x_);
    Block packed(kernel->packed_bytes() / 4, 0), scratch = scratch_of(*kernel);
    kernel->pack(floats(weights_).data(), packed.data());
    const std::vector<float> bias = floats(bias_);
    ASSERT_TRUE(kernel->execute({.source = x.data(),
                                 .packed = packed.data(),
                                 .bias = spec.shape.bias ? bias.data() : nullptr,
                                 .result = y.data(),
                                 .scratch = scratch.data()}));
    y.expect(y_.y);
  });
}

TEST_P(Grouped, Data) {
  for_each_way(Direction::data, [&](Isa isa, const ConvolutionSpec& spec) {
    const auto kernel = make_grouped(isa, spec);
    Placed dx = placed(x_, spec, false), dy = placed(dy_, spec, false);
    dy.write(dy_);
    Block packed(kernel->packed_bytes() / 4, 0), scratch = scratch_of(*kernel);
    kernel->pack(floats(weights_).data(), packed.data());
    ASSERT_TRUE(kernel->execute(
        {.source = dx.data(), .packed = packed.data(), .result = dy.data(), .scratch = scratch.data()}));
    dx.expect(gradient_.dx[0]);
  });
}

/// Executed twice, the second time on top of the first.
TEST_P(Grouped, Weights) {
  for_each_way(Direction::weights, [&](Isa isa, const ConvolutionSpec& spec) {
    const auto kernel = make_grouped(isa, spec);
    ASSERT_TRUE(kernel->adds());
    Placed x = placed(x_, spec, spec.shape.reads_plain), dy = placed(dy_, spec, false);
    x.write(x_);
    dy.write(dy_);
    Block packed(kernel->packed_bytes() / 4, untouched), scratch = scratch_of(*kernel);
    std::vector<float> bias(bias_.size() + 1, untouched), weights(weights_.size());
    for (const double times : {1.0, 2.0}) {
      ASSERT_TRUE(kernel->execute({.source = x.data(),
                                   .packed = packed.data(),
                                   .bias = spec.shape.bias ? bias.data() : nullptr,
                                   .result = dy.data(),
                                   .scratch = scratch.data(),
                                   .add = times > 1}));
      kernel->unpack(packed.data(), weights.data());
      for (std::size_t i = 0; i < weights.size(); ++i)
        ASSERT_EQ(weights[i], times * gradient_.dparameters[0][i]) << "weight " << i;
      for (std::size_t i = 0; spec.shape.bias && i < bias_.size(); ++i)
        ASSERT_EQ(bias[i], times * gradient_.dparameters[1][i]) << "bias " << i;
      ASSERT_EQ(bias.back(), untouched);
    }
  });
}

/// Values that rounding tells apart: what a direction writes, by 1 and by 3 threads; and nothing is allocated.
TEST_P(Grouped, BitsDontDependOnThreads) {
  for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
    std::map<std::pair<Isa, std::pair<MemoryFormat, Storage>>, std::vector<float>> alone;
    for_each_way(direction, [&](Isa isa, const ConvolutionSpec& spec) {
      if (spec.shape.reads_plain) return;
      const auto kernel = make_grouped(isa, spec);
      Placed x = placed(x_, spec, false), y = placed(dy_, spec, false);
      const bool weights = direction == Direction::weights;
      if (direction != Direction::data) x.write(formula_tensor("x", Tensor::like(x_)));
      if (direction != Direction::forward) y.write(formula_tensor("dy", Tensor::like(dy_)));
      Block packed(kernel->packed_bytes() / 4, 0), scratch = scratch_of(*kernel);
      const std::vector<float> canonical = floats(formula_values("w", static_cast<Index>(weights_.size())));
      kernel->pack(canonical.data(), packed.data());
      const long before = count_allocations();
      const bool good =
          kernel->execute({.source = x.data(), .packed = packed.data(), .result = y.data(), .scratch = scratch.data()});
      const long allocations = count_allocations() - before;
      ASSERT_TRUE(good);
      ASSERT_TRUE(spec.threads > 1 || allocations == 0);
      const auto made = weights ? std::vector<float>(packed.data(), packed.data() + kernel->packed_bytes() / 4)
                                : (direction == Direction::data ? x : y).floats();
      const auto [first, is_first] = alone.try_emplace({isa, {spec.shape.format, spec.shape.storage}}, made);
      if (is_first) return;
      ASSERT_EQ(std::memcmp(made.data(), first->second.data(), made.size() * sizeof(float)), 0);
    });
  }
}

Convolution convolution(Index in, Index out, int groups, int kernel, int stride, int pad, bool bias = false) {
  return {.in = in, .out = out, .kernel = kernel, .stride = stride, .pad = pad, .groups = groups, .bias = bias};
}
Convolution rectangle(Index channels, int groups, int kernel, int kernel_w, int stride, int pad, int pad_w) {
  Convolution result = convolution(channels, channels, groups, kernel, stride, pad);
  result.kernel_w = kernel_w;
  result.pad_w = pad_w;
  return result;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Grouped,
                         testing::Values(Case{"depthwise", convolution(32, 32, 32, 3, 1, 1), 2, 7, 7},
                                         Case{"depthwise_tail_bias", convolution(24, 24, 24, 3, 1, 1, true), 2, 5, 9},
                                         Case{"depthwise_strided", convolution(20, 20, 20, 3, 2, 1), 1, 8, 9},
                                         Case{"depthwise_5x5", convolution(16, 16, 16, 5, 1, 2), 2, 5, 9},
                                         Case{"depthwise_5x5_strided", convolution(33, 33, 33, 5, 2, 2), 1, 9, 14},
                                         Case{"depthwise_7x7", convolution(16, 16, 16, 7, 1, 3), 1, 7, 15},
                                         Case{"depthwise_11x11_stride_4", convolution(16, 16, 16, 11, 4, 2), 1, 16, 19},
                                         Case{"depthwise_no_pad", convolution(16, 16, 16, 3, 1, 0), 1, 3, 29},
                                         Case{"depthwise_much_pad", convolution(16, 16, 16, 3, 1, 4), 1, 3, 2},
                                         Case{"depthwise_skips", convolution(16, 16, 16, 2, 3, 0), 1, 9, 8},
                                         Case{"depthwise_1x1_strided", convolution(16, 16, 16, 1, 2, 0), 2, 6, 5},
                                         Case{"pairs", convolution(40, 40, 20, 3, 1, 1, true), 1, 7, 7},
                                         Case{"fours", convolution(32, 32, 8, 3, 1, 1), 2, 7, 7},
                                         Case{"fours_strided_tail", convolution(20, 20, 5, 3, 2, 1, true), 2, 5, 9},
                                         Case{"fours_5x5", convolution(16, 16, 4, 5, 2, 2), 1, 10, 11},
                                         Case{"eights", convolution(64, 64, 8, 3, 1, 1), 1, 5, 9},
                                         Case{"eights_strided_tail", convolution(24, 24, 3, 3, 2, 1), 1, 7, 7},
                                         Case{"sixteens", convolution(48, 48, 3, 3, 1, 1, true), 1, 7, 7},
                                         Case{"sixteens_strided", convolution(32, 32, 2, 3, 2, 1), 2, 6, 9},
                                         Case{"thirty_twos", convolution(64, 64, 2, 3, 1, 1), 1, 5, 6},
                                         Case{"threes", convolution(12, 12, 4, 3, 1, 1), 1, 5, 6},
                                         Case{"twenty_fours", convolution(48, 48, 2, 3, 2, 1), 1, 5, 6},
                                         Case{"more_results", convolution(16, 32, 16, 3, 1, 1, true), 1, 6, 5},
                                         Case{"fewer_results", convolution(32, 16, 16, 3, 1, 1), 1, 6, 5},
                                         Case{"sixteen_results_of_six", convolution(18, 48, 3, 3, 1, 1), 1, 5, 5},
                                         Case{"eight_to_sixteen", convolution(24, 48, 3, 3, 1, 1), 1, 5, 5},
                                         Case{"one_group", convolution(5, 19, 1, 3, 1, 1, true), 1, 6, 5},
                                         Case{"rows_only", rectangle(40, 10, 5, 1, 2, 2, 0), 1, 7, 6},
                                         Case{"columns_only", rectangle(16, 16, 1, 7, 1, 0, 3), 1, 6, 9},
                                         Case{"bands", convolution(16, 16, 16, 3, 1, 1), 1, 80, 70},
                                         Case{"bands_strided", convolution(16, 16, 4, 3, 2, 1), 1, 81, 90}),
                         [](const auto& test) { return std::string(test.param.name); });

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
