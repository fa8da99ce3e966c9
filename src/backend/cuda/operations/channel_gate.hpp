// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// y[n][pixels][channels] = x * gate(s[n][channels]); backend/rules/gate.hpp.
struct GatePass {
  Storage storage = Storage::f32;
  Index n = 0, pixels = 0, channels = 0;
  GateKind gate = GateKind::sigmoid;
};
cudaError_t gate_channels(const GatePass& pass, const void* x, const void* s, void* y, cudaStream_t stream);

/// dx = dy * gate(s); ds = gate'(s) * sum of dy * x over the pixels. Null: not wanted.
struct GateGradients {
  const void *x = nullptr, *s = nullptr, *dy = nullptr;
  void *dx = nullptr, *ds = nullptr;
};
cudaError_t gate_channels_backward(const GatePass& pass, const GateGradients& tensors, cudaStream_t stream);

}  // namespace convoy::cuda
