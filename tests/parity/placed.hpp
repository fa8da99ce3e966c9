// SPDX-License-Identifier: Apache-2.0
// Operands of single CPU kernels: whole numbers that fp32 and bf16 hold exactly, tensors in the layouts and storages of
// the kernels, and guards behind them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cpu/element.hpp"
#include "support/formula.hpp"
#include "support/instruction_sets.hpp"
#include "support/reference/tensor.hpp"

namespace convoy::cpu {

using reference::Tensor;
using reference::Values;

inline constexpr float untouched = 12345;

/// Whole numbers from -3 to 3.
inline Values whole_numbers(const std::string& name, Index count) {
  Values values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<double>(formula_bits(name, i) >> 8 & 0xff) / 40;
  for (double& value : values) value = std::floor(value) - 3;
  return values;
}

inline Tensor whole_numbers(const std::string& name, Tensor shape) {
  shape.values = whole_numbers(name, shape.count());
  return shape;
}

/// Floats on 64 bytes, with a guard behind them.
class Block {
 public:
  Block(Index floats, float value) : floats_(floats), data_(static_cast<std::size_t>(floats) + 32, value) {
    std::fill(data() + floats, data_.data() + data_.size(), untouched);
  }
  void expect_guard() {
    for (const float* at = data() + floats_; at < data_.data() + data_.size(); ++at)
      ASSERT_EQ(*at, untouched) << "behind a buffer of " << floats_ << " floats";
  }
  float* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(data_.data());
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
  }

 private:
  Index floats_;
  std::vector<float> data_;
};

/// A tensor as the kernels see it, with a guard behind it.
class Placed {
 public:
  enum class Order : std::uint8_t { blocked, nhwc, plain };
  Placed(const Tensor& like, Order order, Storage storage)
      : like_(Tensor::like(like)), order_(order), storage_(storage), block_(elements() + guard, untouched) {}

  void write(const Tensor& values) {
    if (order_ == Order::blocked) std::memset(block_.data(), 0, static_cast<std::size_t>(elements()) * 4);
    each([&](Index place, Index i) {
      write_element(bytes(), storage_, place, static_cast<float>(values.values[static_cast<std::size_t>(i)]));
    });
  }
  void expect(const Tensor& exact) {
    each([&](Index place, Index i) {
      std::byte rounded[4];
      write_element(rounded, storage_, 0, static_cast<float>(exact.values[static_cast<std::size_t>(i)]));
      ASSERT_EQ(read_element(bytes(), storage_, place), read_element(rounded, storage_, 0)) << "element " << i;
    });
    expect_nothing_else();
  }
  /// The norm of the distance from `exact`, by the norm of `exact`.
  double distance_from(const Tensor& exact) {
    double error = 0, size = 0;
    each([&](Index place, Index i) {
      const double wanted = exact.values[static_cast<std::size_t>(i)];
      error += std::pow(static_cast<double>(read_element(bytes(), storage_, place)) - wanted, 2);
      size += wanted * wanted;
    });
    return std::sqrt(error / size);
  }
  /// Zeros in the channels that aren't there, and the guard as it was.
  void expect_nothing_else() {
    const Index stored = order_ == Order::blocked ? blocks() * lanes : like_.c;
    for (Index i = 0; i < like_.n; ++i) {
      for (Index c = like_.c; c < stored; ++c) {
        for (Index p = 0; p < pixels(); ++p)
          ASSERT_EQ(read_element(bytes(), storage_, place_of(i, c, p)), 0) << "a channel that isn't there";
      }
    }
    const Index bytes_used = elements() * (storage_ == Storage::f32 ? 4 : 2);
    const float* const end = block_.data() + (bytes_used + 3) / 4;
    for (Index i = 0; i < guard; ++i) ASSERT_EQ(end[i], untouched) << "behind the tensor";
  }
  void* data() { return block_.data(); }
  std::vector<float> floats() {
    return {block_.data(), block_.data() + elements() / (storage_ == Storage::f32 ? 1 : 2)};
  }

 private:
  static constexpr Index guard = 16;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(block_.data()); }
  Index pixels() const { return like_.h * like_.w; }
  Index blocks() const { return (like_.c + lanes - 1) / lanes; }
  Index elements() const { return like_.n * pixels() * (order_ == Order::blocked ? blocks() * lanes : like_.c); }
  Index place_of(Index i, Index c, Index p) const {
    if (order_ == Order::blocked) return ((i * blocks() + c / lanes) * pixels() + p) * lanes + c % lanes;
    return order_ == Order::nhwc ? (i * pixels() + p) * like_.c + c : (i * like_.c + c) * pixels() + p;
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (Index i = 0; i < like_.n; ++i)
      for (Index c = 0; c < like_.c; ++c)
        for (Index p = 0; p < pixels(); ++p) visit(place_of(i, c, p), (i * like_.c + c) * pixels() + p);
  }

  Tensor like_;
  Order order_;
  Storage storage_;
  Block block_;
};

}  // namespace convoy::cpu
