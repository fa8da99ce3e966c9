// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"

namespace convoy::cpu {

/// The same strides, the other storage.
struct ConvertArgs {
  TensorLayout layout;  ///< the layout of `from`
  const void* from = nullptr;
  void* to = nullptr;
};

struct ConversionKernels {
  void (*convert)(const ConvertArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
