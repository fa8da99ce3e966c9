// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// Several tensors of the same rows, and one whose rows are theirs side by side.
struct ChannelParts {
  static constexpr int most = 64;
  struct Part {
    void* tensor = nullptr;  ///< [rows][channels]; null: left out
    Index channels = 0;
    Index begin = 0;  ///< its first channel in the whole
  };
  Storage storage = Storage::f32;
  Index rows = 0, channels = 0;  ///< the shape of the whole
  int count = 0;
  Part parts[most];
  void* whole = nullptr;
};
/// whole = the parts, in one launch.
cudaError_t join_channels(const ChannelParts& parts, cudaStream_t stream);
/// The parts = the whole: the gradient.
cudaError_t split_channels(const ChannelParts& parts, cudaStream_t stream);

}  // namespace convoy::cuda
