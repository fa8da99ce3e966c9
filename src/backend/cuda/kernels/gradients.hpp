// SPDX-License-Identifier: Apache-2.0
// The end of a stage: filters' gradients go from where convolutions left them into the gradient block, which is made
// ready for the sums of the ranks, all by one launch.
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// One block's work, at most piece_elements elements of the gradient block from `begin` on.
struct GradientPiece {
  /// `from` of a piece without a filter: kernels have written the gradients, or no kernel has and they are zeroed.
  static constexpr Index written = -1, unwritten = -2;
  Index begin = 0;
  Index from = written;  ///< of a filter: bytes in the arena, of the element (first k, 0, first channel)
  std::int32_t ks = 1, channels = 1, rs = 1;  ///< elements = ks * channels * rs, [k][c][rs]
  std::int32_t stored_c = 1;                  ///< of a filter: [k][rs][stored_c] in the arena
};

/// The first stage of a step that made something not finite; between steps no_stage.
inline constexpr std::int32_t no_stage = 0x7fffffff;

struct GradientCollection {
  Storage storage = Storage::f32;  ///< of filters' gradients
  const std::byte* arena = nullptr;
  const GradientPiece* pieces = nullptr;  ///< device memory
  int count = 0;
  float* gradients = nullptr;
  const float* loss_scale = nullptr;  ///< filters' gradients are divided by it; null: 1
  std::int32_t stage = 0;             ///< noted in `worst` if any gradient of the stage isn't finite
  std::int32_t* worst = nullptr;
  /// The last stage alone, else null: flags[feed->replica] = 0, or 1 + the stage noted, and `worst` is no_stage again.
  float* flags = nullptr;
  const FeedNumbers* feed = nullptr;
  unsigned* arrivals = nullptr;  ///< one; kernels/meeting.cuh
};
cudaError_t collect_gradients(const GradientCollection& collection, cudaStream_t stream);

}  // namespace convoy::cuda
