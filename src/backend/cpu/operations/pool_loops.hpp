// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// Max: `argmax` keeps r * kernel + s of the element taken, laid out as y. Average: argmax is null.
struct PoolArgs {
  TensorLayout x, y;
  std::int64_t kernel = 2, stride = 2, pad = 0;
  bool count_padding = true;
  const void* from = nullptr;  ///< x forward, dy backward
  void* to = nullptr;          ///< y forward, dx backward
  std::uint16_t* argmax = nullptr;
};

/// Units of y forward, of x backward.
struct PoolKernels {
  void (*forward)(const PoolArgs&, std::int64_t begin, std::int64_t end);
  void (*backward)(const PoolArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
