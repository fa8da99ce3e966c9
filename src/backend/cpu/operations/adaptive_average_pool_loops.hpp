// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

struct AdaptivePoolArgs {
  TensorLayout x, y;
  const void* from = nullptr;  ///< x forward, dy backward
  void* to = nullptr;          ///< y forward, dx backward
};

/// Units of y forward, of x backward.
struct AdaptivePoolKernels {
  void (*forward)(const AdaptivePoolArgs&, std::int64_t begin, std::int64_t end);
  void (*backward)(const AdaptivePoolArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
