// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"
#include "backend/rules/local_response.hpp"

namespace convoy::cpu {

/// y from x, or dx from x and dy. The window reaches at most one block of channels to either side.
struct LocalResponseArgs {
  TensorLayout layout;
  LocalResponseRule rule;
  const void *x = nullptr, *dy = nullptr;  ///< no dy: forward
  void* to = nullptr;
};

struct LocalResponseKernels {
  /// Units: images times rows of pixels.
  void (*run)(const LocalResponseArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
