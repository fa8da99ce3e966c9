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

/// A convolution's operands and what double makes of them. The usual maps have 9 tiles: not all of a round's rows, and
/// an odd number for pairs.
class Tails {
 public:
  Tails(Index in, Index out, int stride, const Tensor& x = {3, 0, 9, 3})
      : convolution_{.in = in, .out = out, .kernel = 3, .stride = stride, .pad = 1, .bias = true} {
    weights_ = whole_numbers("w", out * in * 9);
    bias_ = whole_numbers("b", out);
    x_ = whole_numbers("x", Tensor(x.n, in, x.h, x.w));
    const reference::Operands operands{.x = {&x_}, .parameters = {&weights_, &bias_}};
    y_ = reference::forward(convolution_, operands);
    dy_ = whole_numbers("dy", Tensor::like(y_.y));
    gradient_ = reference::backward(convolution_, operands, y_, dy_);
  }

  void check(Isa isa, ConvolutionSpec spec) const {
    spec.shape.images = x_.n;
    spec.shape.in = convolution_.in;
    spec.shape.out = convolution_.out;
    spec.shape.height = x_.h;
    spec.shape.width = x_.w;
    spec.shape.stride = convolution_.stride;
    spec.shape.bias = true;
    ASSERT_TRUE(winograd_fits(spec.shape));
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
      const auto terms = static_cast<Index>(times) * dy_.n * dy_.h * dy_.w;
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

void check_all(const Tails& tails, int stride) {
  for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
    for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
      for (const Algorithm algorithm : {Algorithm::winograd, Algorithm::winograd_bf16}) {
        for (const Storage storage : {Storage::f32, Storage::bf16}) {
          for (const Isa isa : isas()) {
            const bool bf16 = storage == Storage::bf16;
            if (bf16 && (isa == Isa::avx2 || stride == 2)) continue;  // which the backend and the kernel refuse
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
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST_P(WinogradTails, StayInTheirBuffersAndNearDouble) {
  const Index tail = GetParam();
  for (const Tails& tails : {Tails(tail, lanes + tail, 1), Tails(lanes + tail, tail, 1)}) check_all(tails, 1);
}

TEST_P(WinogradTails, StayInTheirBuffersAndNearDoubleWithStride2) {
  const Index tail = GetParam();
  for (const Tails& tails : {Tails(tail, lanes + tail, 2), Tails(lanes + tail, tail, 2)}) check_all(tails, 2);
}

/// The smallest maps, odd and even ones, and some of several tiles. Only the middle tap reads the last pixel of an odd
/// map, and only the last tap that of an even map.
TEST(WinogradMaps, OfStride2StayInTheirBuffersAndNearDouble) {
  for (const auto& [h, w] : {std::pair<Index, Index>{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 8}, {8, 8}, {7, 16}, {9, 17}}) {
    for (const Index count : {1, 3}) {
      SCOPED_TRACE(testing::Message() << count << " images of " << h << " x " << w);
      check_all(Tails(5, lanes + 3, 2, {count, 0, h, w}), 2);
      if (HasFatalFailure()) return;
    }
  }
}

/// Wide layers, of which a round takes 36, 60 or 120 tiles, with stride 2 24 or 60: whole rounds, some whose rest the
/// last one takes too (8, 1 and 3 tiles), and some whose rest makes a round of its own.
TEST(WinogradRounds, StayInTheirBuffersAndNearDouble) {
  struct Layer {
    Index in, out;
    int stride;
    Tensor x;
  };
  for (const auto& [in, out, stride, x] : {Layer{16, 272, 1, {2, 0, 18, 32}},    // 80 tiles: 36 + 44, and 60 + 20
                                           Layer{272, 16, 1, {1, 0, 32, 32}},    // 64: 36 + 28, and 64
                                           Layer{16, 512, 1, {2, 0, 32, 32}},    // 128, as 120 and 8
                                           Layer{16, 512, 1, {2, 0, 40, 32}},    // 160: 120 + 40
                                           Layer{5, 20, 2, {1, 0, 40, 40}},      // 25, as 24 and 1
                                           Layer{5, 20, 2, {1, 0, 40, 64}},      // 40: 24 + 16
                                           Layer{3, 512, 2, {1, 0, 72, 56}}}) {  // 63, as 60 and 3
    SCOPED_TRACE(testing::Message() << in << " to " << out << " channels, stride " << stride << ", " << x.n << " x "
                                    << x.h << " x " << x.w);
    check_all(Tails(in, out, stride, x), stride);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, WinogradTails, testing::Range<Index>(1, lanes + 1));

/// One combination of layout, algorithm, instruction set and stride to test.
struct Way {
  MemoryFormat format;
  Algorithm algorithm;
  Isa isa;
  int stride;

  bool bf16() const { return algorithm == Algorithm::winograd_bf16; }
  ConvolutionSpec spec(Direction direction, int threads) const {
    ConvolutionSpec spec{.direction = direction, .algorithm = algorithm, .threads = threads};
    spec.shape.stride = stride;
    spec.shape.format = format;
    spec.shape.storage = bf16() ? Storage::bf16 : Storage::f32;
    return spec;
  }
  Placed placed(const Tensor& like, const char* values) const {
    Placed result(like, format == MemoryFormat::blocked ? Placed::Order::blocked : Placed::Order::nhwc,
                  bf16() ? Storage::bf16 : Storage::f32);
    result.write(formula_tensor(values, like));
    return result;
  }
};

/// `images` of results of `height` x `width` pixels, with as many channels on both sides; `at_once` in an execution.
struct Work {
  Index images, at_once, channels, height, width;
};

/// What a direction makes: y, dx, or the gradient of the weights.
std::vector<float> made(const Way& way, Direction direction, int threads, const Work& w) {
  const bool weights = direction == Direction::weights;
  const Index source_height = w.height * way.stride, source_width = w.width * way.stride;
  Placed x = way.placed(Tensor(w.images, w.channels, source_height, source_width), "x"),
         y = way.placed(Tensor(w.images, w.channels, w.height, w.width), "dy");
  ConvolutionSpec spec = way.spec(direction, threads);
  spec.shape.images = w.at_once;
  spec.shape.in = spec.shape.out = w.channels;
  spec.shape.height = source_height;
  spec.shape.width = source_width;
  const auto kernel = make_winograd(way.isa, spec);
  Block packed(kernel->packed_bytes() / 4, 0), scratch(kernel->scratch_bytes() / 4, untouched);
  const Values values = formula_values("w", w.channels * w.channels * 9);
  std::vector<float> canonical(values.begin(), values.end());
  if (!weights) kernel->pack(canonical.data(), packed.data());
  const auto at = [&](Placed& tensor, Index image, Index pixels) {
    return reinterpret_cast<const std::byte*>(tensor.data()) + image * pixels * w.channels * (way.bf16() ? 2 : 4);
  };
  for (Index first = 0; first < w.images; first += w.at_once)
    EXPECT_TRUE(kernel->execute({.source = at(x, first, source_height * source_width),
                                 .packed = packed.data(),
                                 .result = at(y, first, w.height * w.width),
                                 .scratch = scratch.data(),
                                 .add = weights && first > 0}));
  packed.expect_guard();
  scratch.expect_guard();
  if (!weights) return (direction == Direction::data ? x : y).floats();
  kernel->unpack(packed.data(), canonical.data());
  return canonical;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

template <class Check>
void for_each_way(const Check& check) {
  for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc})
    for (const Algorithm algorithm : {Algorithm::winograd, Algorithm::winograd_bf16})
      for (const Isa isa : isas())
        for (const int stride : {1, 2}) {
          const Way way{format, algorithm, isa, stride};
          if (way.bf16() && (isa != Isa::avx512_bf16 || stride == 2)) continue;
          SCOPED_TRACE(testing::Message() << (format == MemoryFormat::blocked ? "blocked" : "nhwc") << ", stride "
                                          << stride << (way.bf16() ? ", products in bf16, " : ", ") << name_of(isa));
          check(way);
          if (testing::Test::HasFatalFailure()) return;
        }
}

/// With one thread, 242 tiles fill several rounds and a part of one. They are enough for 3 threads to take tiles of
/// their own forward and in the gradient of the source, and too few for 16. -3 stands for 3 threads that are asked for
/// within a parallel region, which runs the kernel on one.
TEST(WinogradKernels, BitsDontDependOnThreads) {
  for_each_way([](const Way& way) {
    constexpr Work work{.images = 2, .at_once = 2, .channels = lanes, .height = 44, .width = 44};
    for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
      const std::vector<float> alone = made(way, direction, 1, work);
      for (const int threads : {2, 3, 16, -3}) {
        SCOPED_TRACE(testing::Message() << "direction " << static_cast<int>(direction) << ", " << threads
                                        << " threads");
        std::vector<float> shared;
#pragma omp parallel num_threads(2) if (threads < 0)
#pragma omp single
        shared = made(way, direction, std::abs(threads), work);
        expect_same_bits(shared, alone);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

/// VGG-16's layers of 512 channels, batch 256, on more and more threads, alone or as copies that each take 8 images.
TEST(WinogradKernels, NeedBoundedScratch) {
  const auto bytes = [](Direction direction, Index images, int threads, int copies) {
    ConvolutionSpec spec{
        .direction = direction, .algorithm = Algorithm::winograd, .threads = threads, .copies = copies};
    spec.shape = {.images = images, .in = 512, .out = 512, .height = 28, .width = 28};
    return make_winograd(isas().front(), spec)->scratch_bytes() * copies;
  };
  // 36 points of 512 + 512 channels are 144 KiB; of one thread's 120 tiles the last round takes a few more.
  constexpr Index tile = 36 * 1024 * 4;
  for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
    SCOPED_TRACE(testing::Message() << "direction " << static_cast<int>(direction));
    EXPECT_GE(bytes(direction, 256, 2, 1), 240 * tile) << "as fast as before";
    for (const int threads : {16, 24, 64, 96, 256, 1024})
      EXPECT_LE(bytes(direction, 256, threads, 1), winograd_scratch_bytes) << threads << " threads";
  }
  EXPECT_LE(bytes(Direction::forward, 8, 1, 64), winograd_scratch_bytes);
}

/// A batch of more than 1 MiB, whose tensors the kernels prefetch, gives the same bits as its images one by one, which
/// they do not prefetch with stride 1. An image has 120 tiles, so no chain of additions crosses images.
TEST(WinogradBatches, HaveTheBitsOfTheirImages) {
  for_each_way([](const Way& way) {
    const Index count = way.bf16() ? 10 : 5;
    Work work{.images = count, .at_once = count, .channels = 2 * lanes, .height = 40, .width = 48};
    for (const Direction direction : {Direction::forward, Direction::data, Direction::weights}) {
      SCOPED_TRACE(testing::Message() << "direction " << static_cast<int>(direction));
      work.at_once = count;
      const std::vector<float> batch = made(way, direction, 2, work);
      work.at_once = 1;
      expect_same_bits(batch, made(way, direction, 2, work));
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace convoy::cpu
