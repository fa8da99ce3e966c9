// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"
#include "backend/rules/padding.hpp"

namespace convoy::cuda {

/// InputSpec and sizes; see backend/backend.hpp for what each sample becomes.
struct InputStage {
  enum class Normalise : std::uint8_t { channel, mean_image, per_image };
  Storage storage = Storage::f32;
  Normalise normalise = Normalise::channel;
  Padding padding = Padding::constant;
  int samples = 0;
  int source_height = 0, source_width = 0;
  int height = 0, width = 0;              ///< the size of the network's input
  int channels = 0, stored_channels = 0;  ///< stored ones past `channels` are set to 0; both at most 8
  float mean[4] = {}, std[4] = {1, 1, 1, 1};
  const float* mean_image = nullptr;  ///< device memory, source_height * source_width * channels
  const SampleRow* rows = nullptr;
  const FeedNumbers* feed = nullptr;
  float* moments = nullptr;  ///< per_image: 2 floats a sample
  void* x = nullptr;         ///< [samples][height][width][stored_channels]
};

/// Gather, crop with padding, flip, normalise, erase, mix, cast. One launch; per_image: two.
cudaError_t make_input(const InputStage& stage, cudaStream_t stream);

}  // namespace convoy::cuda
