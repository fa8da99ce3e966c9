// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// Average of x over all pixels into rows of floats [image][channels], or its gradient back over all pixels. An average
/// is within 34 u of the average of the absolute values, for any number of pixels (u = 2^-24).
struct GlobalAverageArgs {
  TensorLayout x;
  const void* from = nullptr;
  void* to = nullptr;
};

/// Units of x.
struct GlobalAverageKernels {
  void (*forward)(const GlobalAverageArgs&, std::int64_t begin, std::int64_t end);
  void (*backward)(const GlobalAverageArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
