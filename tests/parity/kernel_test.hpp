// SPDX-License-Identifier: Apache-2.0
// Our own kernels of convolutions, one by one: all directions, layouts, storages and instruction sets of this machine,
// also where a network would take other kernels. Values are small whole numbers: products and sums stay below 2^24, so
// fp32 makes no error in any order, and a result in bf16 is the exact one rounded once.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/convolution_kernel.hpp"
#include "parity/placed.hpp"
#include "support/allocations.hpp"
#include "support/reference/operations.hpp"

namespace convoy::cpu {

struct KernelCase {
  const char* name;
  Convolution spec;
  Index images, height, width;
};

inline std::string name_of_case(const testing::TestParamInfo<KernelCase>& test) { return test.param.name; }

inline Convolution convolution(Index in, Index out, int groups, int kernel, int stride, int pad, bool bias = false) {
  return {.in = in, .out = out, .kernel = kernel, .stride = stride, .pad = pad, .groups = groups, .bias = bias};
}
inline Convolution rectangle(Index channels, int groups, int kernel, int kernel_w, int stride, int pad, int pad_w) {
  Convolution result = convolution(channels, channels, groups, kernel, stride, pad);
  result.kernel_w = kernel_w;
  result.pad_w = pad_w;
  return result;
}

/// A kernel that `make` gives, for algorithm `algorithm`.
class KernelTest : public testing::TestWithParam<KernelCase> {
 protected:
  using Make = std::unique_ptr<ConvolutionKernel> (*)(Isa, const ConvolutionSpec&);
  using Fits = bool (*)(const ConvolutionSpec&);
  /// `fits`: whether there is a kernel.
  KernelTest(Algorithm algorithm, Make make, Fits fits) : algorithm_(algorithm), make_(make), fits_(fits) {}

  void SetUp() override {
    const KernelCase& c = GetParam();
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

  /// Calls check(isa, spec) for each layout, storage, order of the source (ours or n c h w), number of threads and
  /// instruction set that `fits` accepts.
  template <class Check>
  void for_each_way(Direction direction, const Check& check) {
    const KernelCase& c = GetParam();
    const Convolution& s = c.spec;
    int ways = 0;
    for (const MemoryFormat format : {MemoryFormat::blocked, MemoryFormat::nhwc}) {
      for (const Storage storage : {Storage::f32, Storage::bf16}) {
        for (const bool plain : {false, true}) {
          if (plain && (storage == Storage::bf16 || direction == Direction::data)) continue;
          for (const int threads : {1, 3}) {
            ConvolutionSpec spec{.direction = direction, .algorithm = algorithm_, .threads = threads};
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
            if (!fits_(spec)) continue;
            ++ways;
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
    ASSERT_GT(ways, 0);
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

  void check_forward() {
    for_each_way(Direction::forward, [&](Isa isa, const ConvolutionSpec& spec) {
      const auto kernel = make_(isa, spec);
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
      packed.expect_guard();
      scratch.expect_guard();
    });
  }

  void check_data() {
    for_each_way(Direction::data, [&](Isa isa, const ConvolutionSpec& spec) {
      const auto kernel = make_(isa, spec);
      Placed dx = placed(x_, spec, false), dy = placed(dy_, spec, false);
      dy.write(dy_);
      Block packed(kernel->packed_bytes() / 4, 0), scratch = scratch_of(*kernel);
      kernel->pack(floats(weights_).data(), packed.data());
      ASSERT_TRUE(kernel->execute(
          {.source = dx.data(), .packed = packed.data(), .result = dy.data(), .scratch = scratch.data()}));
      dx.expect(gradient_.dx[0]);
      packed.expect_guard();
      scratch.expect_guard();
    });
  }

  /// Executed twice, the second time on top of the first.
  void check_weights() {
    for_each_way(Direction::weights, [&](Isa isa, const ConvolutionSpec& spec) {
      const auto kernel = make_(isa, spec);
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
        packed.expect_guard();
        scratch.expect_guard();
      }
    });
  }

  /// Checks that 1 and 3 threads write the same bits, with values whose sums round. One thread allocates nothing.
  void check_bits(std::initializer_list<Direction> directions) {
    for (const Direction direction : directions) {
      std::map<std::pair<Isa, std::pair<MemoryFormat, Storage>>, std::vector<float>> alone;
      for_each_way(direction, [&](Isa isa, const ConvolutionSpec& spec) {
        if (spec.shape.reads_plain) return;
        const auto kernel = make_(isa, spec);
        Placed x = placed(x_, spec, false), y = placed(dy_, spec, false);
        const bool weights = direction == Direction::weights;
        if (direction != Direction::data) x.write(formula_tensor("x", Tensor::like(x_)));
        if (direction != Direction::forward) y.write(formula_tensor("dy", Tensor::like(dy_)));
        Block packed(kernel->packed_bytes() / 4, 0), scratch = scratch_of(*kernel);
        const std::vector<float> canonical = floats(formula_values("w", static_cast<Index>(weights_.size())));
        kernel->pack(canonical.data(), packed.data());
        const long before = count_allocations();
        const bool good = kernel->execute(
            {.source = x.data(), .packed = packed.data(), .result = y.data(), .scratch = scratch.data()});
        const long allocations = count_allocations() - before;
        ASSERT_TRUE(good);
        ASSERT_TRUE(spec.threads > 1 || allocations == 0);
        packed.expect_guard();
        scratch.expect_guard();
        const auto made = weights ? std::vector<float>(packed.data(), packed.data() + kernel->packed_bytes() / 4)
                                  : (direction == Direction::data ? x : y).floats();
        const auto [first, is_first] = alone.try_emplace({isa, {spec.shape.format, spec.shape.storage}}, made);
        if (is_first) return;
        ASSERT_EQ(std::memcmp(made.data(), first->second.data(), made.size() * sizeof(float)), 0);
      });
    }
  }

 private:
  const Algorithm algorithm_;
  const Make make_;
  const Fits fits_;
  Values weights_, bias_;
  Tensor x_, dy_;
  reference::Output y_;
  reference::Gradient gradient_;
};

}  // namespace convoy::cpu
