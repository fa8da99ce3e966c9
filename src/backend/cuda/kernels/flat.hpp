// SPDX-License-Identifier: Apache-2.0
// Kernels over ranges of floats that know no shapes.
#pragma once
#include "backend/cuda/kernels/types.hpp"
#include "core/wire.hpp"

namespace convoy::cuda {

/// to = factor * from; to may be from.
cudaError_t copy_floats(float* to, const float* from, Index n, float factor, cudaStream_t stream);
/// to = fl(to + from): one IEEE addition an element.
cudaError_t add_floats(float* to, const float* from, Index n, cudaStream_t stream);
cudaError_t fill_floats(float* to, Index n, float value, cudaStream_t stream);
/// core/wire.hpp for `wire`, which is bf16 or fp16: to what it can hold, to 16 bits, from them.
cudaError_t round_floats(float* values, Index n, Wire wire, cudaStream_t stream);
cudaError_t narrow_floats(std::uint16_t* to, const float* from, Index n, Wire wire, cudaStream_t stream);
cudaError_t widen_floats(float* to, const std::uint16_t* from, Index n, Wire wire, cudaStream_t stream);
/// to = decay * to + (1 - decay) * from, decay from the step.
cudaError_t blend_floats(float* to, const float* from, Index n, const StepNumbers* step, cudaStream_t stream);

/// Numbers of a step on their way from pinned memory, which the GPU reads where it lies, to where kernels read them.
struct Delivery {
  static constexpr int most_parts = 2;
  struct Part {
    void* to = nullptr;  ///< both on 16 bytes
    const void* from = nullptr;
    Index bytes = 0;  ///< a multiple of 4
  };
  Part parts[most_parts];  ///< none behind one of 0 bytes
};
/// One launch for all parts.
cudaError_t deliver(const Delivery& delivery, cudaStream_t stream);

/// A range of floats of a block, in device memory.
struct FloatRange {
  Index begin = 0, count = 0;
};
/// Zeroes ranges of a block in one launch. `ranges`: device memory.
cudaError_t clear_ranges(float* block, const FloatRange* ranges, int count, Index longest, cudaStream_t stream);

}  // namespace convoy::cuda
