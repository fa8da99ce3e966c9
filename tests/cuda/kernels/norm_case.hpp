// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <functional>

#include "backend/cuda/kernels/norm.hpp"
#include "cuda/kernels/bench.hpp"

namespace convoy::cuda {

struct Size {
  Index rows, channels;
};
/// Odd numbers of both; packs of 8; more packs than a block is wide; more rows than a block takes.
inline constexpr Size sizes[] = {{7, 16}, {131, 5}, {3, 2056}, {700, 24}, {1, 8}, {33, 300}};

inline double curve(const Activating& act, double y) {
  switch (act.curve) {
    case Curve::relu:
      return y < 0 ? 0 : y;
    case Curve::leaky_relu:
      return y > 0 ? y : static_cast<double>(act.slope) * y;
    case Curve::tanh:
      return std::tanh(y);
    case Curve::none:
      break;
  }
  return y;
}
/// By the output, as it is stored.
inline double slope(const Activating& act, double z) {
  switch (act.curve) {
    case Curve::relu:
      return z > 0 ? 1 : 0;
    case Curve::leaky_relu:
      return z > 0 ? 1 : static_cast<double>(act.slope);
    case Curve::tanh:
      return 1 - z * z;
    case Curve::none:
      break;
  }
  return 1;
}
inline constexpr Activating curves[] = {{Curve::none}, {Curve::relu}, {Curve::leaky_relu, 0.25F}, {Curve::tanh}};

inline Values by_channel(Size size, const std::function<double(std::size_t)>& value) {
  Values sums(static_cast<std::size_t>(size.channels), 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(size.rows * size.channels); ++i)
    sums[i % sums.size()] += value(i);
  return sums;
}

}  // namespace convoy::cuda
