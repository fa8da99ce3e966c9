// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/cuda/operations/batch_norm.hpp"
#include "backend/cuda/operations/pointwise.hpp"
#include "cuda/kernels/bench.hpp"

namespace convoy::cuda {

struct Size {
  Index rows, channels;
};
/// Odd numbers of both; packs of 8; more packs than a block is wide; more rows than a block takes.
inline constexpr Size sizes[] = {{7, 16}, {131, 5}, {3, 2056}, {700, 24}, {1, 8}, {33, 300}};

/// More blocks than one group of them, and a last group that is not full: a reduction's last blocks meet twice.
inline constexpr Size many_blocks{30000, 24};

/// Where a reduction works. What it leaves must be as it found it.
struct Reduction {
  ReductionPlace place;
  Index arrivals = 0;
  Reduction(Bench& bench, Size size, int terms) {
    const ReductionSpace space(size.rows, size.channels, terms);
    arrivals = space.arrivals;
    place.sums = bench.empty<double>(space.doubles);
    place.arrivals = bench.put(std::vector<unsigned>(static_cast<std::size_t>(arrivals), 0));
  }
  void expect_ready(Bench& bench) const {
    EXPECT_EQ(bench.get(place.arrivals, arrivals), std::vector<unsigned>(static_cast<std::size_t>(arrivals), 0))
        << "for the next launch";
  }
};

/// The activation and its derivative in double: PyTorch's definitions.
inline double activate(const ActivationRule& rule, double x) {
  switch (rule.kind) {
    case ActivationKind::identity:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::leaky_relu:
      return x > 0 ? x : static_cast<double>(rule.slope) * x;
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::gelu:
      return x * std::erfc(-x / std::sqrt(2.0)) / 2;
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::relu6:
      return std::min(std::max(x, 0.0), 6.0);
    case ActivationKind::hard_swish:
      return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case ActivationKind::scale:
      return static_cast<double>(rule.slope) * x;
  }
  return 0;
}
/// `z`: the output as it is stored, which the derivatives of ReLU, leaky ReLU and tanh are taken from.
inline double derivative(const ActivationRule& rule, double x, double z) {
  switch (rule.kind) {
    case ActivationKind::identity:
      return 1;
    case ActivationKind::relu:
      return z > 0 ? 1 : 0;
    case ActivationKind::leaky_relu:
      return z > 0 ? 1 : static_cast<double>(rule.slope);
    case ActivationKind::tanh:
      return 1 - z * z;
    case ActivationKind::gelu:
      return std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    case ActivationKind::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case ActivationKind::relu6:
      return z > 0 && z < 6 ? 1 : 0;
    case ActivationKind::hard_swish:
      return x >= 3 ? 1 : x > -3 ? x / 3 + 0.5 : 0;
    case ActivationKind::scale:
      return static_cast<double>(rule.slope);
  }
  return 0;
}
inline constexpr ActivationRule activations[] = {
    {ActivationKind::identity}, {ActivationKind::relu},       {ActivationKind::leaky_relu, 0.25F},
    {ActivationKind::tanh},     {ActivationKind::gelu},       {ActivationKind::silu},
    {ActivationKind::relu6},    {ActivationKind::hard_swish}, {ActivationKind::scale, 0.25F}};

inline Values by_channel(Size size, const std::function<double(std::size_t)>& value) {
  Values sums(static_cast<std::size_t>(size.channels), 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(size.rows * size.channels); ++i)
    sums[i % sums.size()] += value(i);
  return sums;
}

}  // namespace convoy::cuda
