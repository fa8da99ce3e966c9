// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cpu/kernels.hpp"
#include "network/operations/activation_kind.hpp"

namespace convoy::cpu {

/// y = x * gate(s), s having one pixel. Of one image and channel all pixels are one unit's.
struct GateArgs {
  TensorLayout x, s;
  GateKind gate = GateKind::sigmoid;
  const void *from_x = nullptr, *from_s = nullptr, *dy = nullptr;
  void* to = nullptr;
};

/// Units of x.
struct GateKernels {
  void (*forward)(const GateArgs&, std::int64_t begin, std::int64_t end);   ///< to = x * gate(s)
  void (*backward)(const GateArgs&, std::int64_t begin, std::int64_t end);  ///< to = dy * gate(s)
  /// to = gate'(s) * sum of dy * x over the pixels, within 37 u of the sum of the absolute terms times gate'(s), for
  /// any number of pixels (u = 2^-24).
  void (*backward_gate)(const GateArgs&, std::int64_t begin, std::int64_t end);
};

}  // namespace convoy::cpu
