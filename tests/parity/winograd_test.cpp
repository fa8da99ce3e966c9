// SPDX-License-Identifier: Apache-2.0
// Winograd's kernels one by one where channels end within a register: all directions, layouts, storages and instruction
// sets of this machine. They must write nothing beyond their buffers, and be as near to double as their points allow.
#include "backend/cpu/winograd/winograd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "parity/placed.hpp"
#include "support/reference/operations.hpp"
#include "support/rounding.hpp"

namespace convoy::cpu {
namespace {

constexpr Index images = 3, height = 9, width = 3;  // 9 tiles: not all of a round's rows, an odd number for pairs

/// Relative to the norm of the results. In fp32 the rule of support/rounding.hpp for one node of `terms` terms. Storing
/// in bf16 rounds by u = 2^-8 at most, and transformed factors in bf16 are off by 14/3 sqrt(2) u (ADR 0022).
double bound_of(const ConvolutionSpec& spec, Index terms) {
  constexpr double bf16_unit = 0x1p-8;
  double bound = winograd_gain * fp32_unit * (4 + std::sqrt(static_cast<double>(terms)));
  if (spec.shape.storage == Storage::bf16 && spec.direction != Direction::weights) bound += bf16_unit;
  if (spec.algorithm == Algorithm::winograd_bf16) bound += 14.0 / 3 * std::sqrt(2.0) * bf16_unit;
  return bound;
}

double distance(const std::vector<float>& got, const Values& exact, double times) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - times * exact[i], 2);
    size += std::pow(times * exact[i], 2);
  }
  return std::sqrt(error / size);
}

/// A convolution's operands and what double makes of them.
class Tails {
 public:
  Tails(Index in, Index out) : convolution_{.in = in, .out = out, .kernel = 3, .stride = 1, .pad = 1, .bias = true} {
    weights_ = whole_numbers("w", out * in * 9);
    bias_ = whole_numbers("b", out);
    x_ = whole_numbers("x", Tensor(images, in, height, width));
    const reference::Operands operands{.x = {&x_}, .parameters = {&weights_, &bias_}};
    y_ = reference::forward(convolution_, operands);
    dy_ = whole_numbers("dy", Tensor::like(y_.y));
    gradient_ = reference::backward(convolution_, operands, y_, dy_);
  }

  void check(Isa isa, ConvolutionSpec spec) const {
    spec.shape.images = images;
    spec.shape.in = convolution_.in;
    spec.shape.out = convolution_.out;
    spec.shape.height = height;
    spec.shape.width = width;
    spec.shape.bias = true;
    const auto kernel = make_winograd(isa, spec);
    Block packed(kernel->packed_bytes() / 4, 0),
        scratch(kernel->scratch_bytes() / 4, std::numeric_limits<float>::quiet_NaN());
    const auto order = spec.shape.format == MemoryFormat::blocked ? Placed::Order::blocked : Placed::Order::nhwc;
    Placed x(x_, order, spec.shape.storage), y(dy_, order, spec.shape.storage);
    Block bias(convolution_.out, 0);
    std::copy(bias_.begin(), bias_.end(), bias.data());
    if (spec.direction != Direction::data) x.write(x_);
    if (spec.direction != Direction::forward) y.write(dy_);
    if (spec.direction != Direction::weights)
      kernel->pack(std::vector<float>(weights_.begin(), weights_.end()).data(), packed.data());
    for (const double times : {1.0, 2.0}) {
      if (times > 1 && spec.direction != Direction::weights) break;
      ASSERT_TRUE(kernel->execute({.source = x.data(),
                                   .packed = packed.data(),
                                   .bias = spec.direction == Direction::data ? nullptr : bias.data(),
                                   .result = y.data(),
                                   .scratch = scratch.data(),
                                   .add = times > 1}));
      packed.expect_guard();
      scratch.expect_guard();
      bias.expect_guard();
      if (spec.direction == Direction::forward) {
        EXPECT_LE(y.distance_from(y_.y), bound_of(spec, convolution_.in * 9 + 1));
        y.expect_nothing_else();
        continue;
      }
      if (spec.direction == Direction::data) {
        EXPECT_LE(x.distance_from(gradient_.dx[0]), bound_of(spec, convolution_.out * 9));
        x.expect_nothing_else();
        continue;
      }
      Block weights(static_cast<Index>(weights_.size()), untouched);
      kernel->unpack(packed.data(), weights.data());
      weights.expect_guard();
      const auto terms = static_cast<Index>(times) * images * height * width;
      const std::vector<float> got(weights.data(), weights.data() + weights_.size());
      EXPECT_LE(distance(got, gradient_.dparameters[0], times), bound_of(spec, terms));
      // Sums of whole numbers below 2^24.
      for (std::size_t i = 0; i < bias_.size(); ++i)
        ASSERT_EQ(bias.data()[i], times * gradient_.dparameters[1][i]) << "bias " << i;
    }
  }

 private:
  Convolution convolution_;
  Values weights_, bias_;
  Tensor x_, dy_;
  reference::Output y_;
  reference::Gradient gradient_;
};

/// Channels of the source that end after `GetParam()` lanes, with as many results and a block more; and the reverse.
class WinogradTails : public testing::TestWithParam<Index> {};

TEST_P(WinogradTails, StayInTheirBuffersAndNearDouble) {
  const Index tail = GetParam();
  for (const Tails& tails : {Tails(tail, lanes + tail), Tails(lanes + tail, tail)}) {
    for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
      for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
        for (const Algorithm algorithm : {Algorithm::winograd, Algorithm::winograd_bf16}) {
          for (const Storage storage : {Storage::f32, Storage::bf16}) {
            for (const Isa isa : isas()) {
              const bool bf16 = storage == Storage::bf16;
              if (bf16 && isa == Isa::avx2) continue;  // which the backend refuses
              if (algorithm == Algorithm::winograd_bf16 && !(bf16 && isa == Isa::avx512_bf16)) continue;
              for (const int threads : {1, 3}) {
                SCOPED_TRACE(testing::Message()
                             << "direction " << static_cast<int>(direction) << ", "
                             << (format == MemoryFormat::blocked ? "blocked" : "nhwc") << (bf16 ? " bf16" : " fp32")
                             << (algorithm == Algorithm::winograd ? "" : ", products in bf16") << ", " << threads
                             << " threads, " << name_of(isa));
                ConvolutionSpec spec{.direction = direction, .algorithm = algorithm, .threads = threads};
                spec.shape.format = format;
                spec.shape.storage = storage;
                tails.check(isa, spec);
                if (HasFatalFailure()) return;
              }
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, WinogradTails, testing::Range<Index>(1, lanes + 1));

/// 242 tiles make four chains of 60 and one of 2, for any number of tiles per round.
TEST(WinogradGradients, BitsDontDependOnThreads) {
  constexpr Index count = 2, channels = 16, size = 44;
  for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
    for (const Algorithm algorithm : {Algorithm::winograd, Algorithm::winograd_bf16}) {
      for (const Isa isa : isas()) {
        const bool bf16 = algorithm == Algorithm::winograd_bf16;
        if (bf16 && isa != Isa::avx512_bf16) continue;
        SCOPED_TRACE(testing::Message() << (format == MemoryFormat::blocked ? "blocked" : "nhwc")
                                        << (bf16 ? ", products in bf16, " : ", ") << name_of(isa));
        const Storage storage = bf16 ? Storage::bf16 : Storage::f32;
        const Placed::Order order = format == MemoryFormat::blocked ? Placed::Order::blocked : Placed::Order::nhwc;
        const Tensor like(count, channels, size, size);
        Placed x(like, order, storage), dy(like, order, storage);
        x.write(formula_tensor("x", like));
        dy.write(formula_tensor("dy", like));
        std::vector<float> alone;
        for (const int threads : {1, 2, 3}) {
          ConvolutionSpec spec{.direction = Direction::weights, .algorithm = algorithm, .threads = threads};
          spec.shape = {.images = count,
                        .in = channels,
                        .out = channels,
                        .height = size,
                        .width = size,
                        .format = format,
                        .storage = storage};
          const auto kernel = make_winograd(isa, spec);
          Block packed(kernel->packed_bytes() / 4, untouched), scratch(kernel->scratch_bytes() / 4, untouched);
          std::vector<float> weights(channels * channels * 9);
          ASSERT_TRUE(kernel->execute(
              {.source = x.data(), .packed = packed.data(), .result = dy.data(), .scratch = scratch.data()}));
          kernel->unpack(packed.data(), weights.data());
          if (threads == 1) alone = weights;
          ASSERT_EQ(std::memcmp(weights.data(), alone.data(), weights.size() * sizeof(float)), 0)
              << threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace convoy::cpu
