// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/kernels/types.hpp"

namespace convoy::cuda {

/// backend/cpu/loss.hpp on the device; labels and masks from the feed.
struct SoftmaxLoss {
  int samples = 0, classes = 0, topk = 5;
  float smoothing = 0;
  float weight = 1;                      ///< of this head in loss and dlogits
  bool adds = false;                     ///< to loss, which other heads began
  const void* raw = nullptr;             ///< [samples][stored_classes] in storage: what the last layer made
  const float* bias = nullptr;           ///< [classes], added to raw; null: none
  float* logits = nullptr;               ///< [samples][classes]: written
  const float* class_weights = nullptr;  ///< [classes]; null: all are 1
  const SampleRow* rows = nullptr;
  const FeedNumbers* feed = nullptr;
  float* loss = nullptr;         ///< [samples], unscaled; 0 past the valid ones
  std::uint8_t* hits = nullptr;  ///< [samples] scratch: bit 0 top-1, bit 1 top-k
  void* dlogits = nullptr;       ///< [samples][stored_classes] in storage, the rest 0; null: forward only
  Index stored_classes = 0;
  Storage storage = Storage::f32;
  const float* loss_scale = nullptr;  ///< multiplies dlogits; null: 1
  unsigned* arrivals = nullptr;       ///< one; kernels/meeting.cuh
  Counters* counters = nullptr;   ///< loss in the order of samples, hits, samples are added; null: an auxiliary head
  std::int32_t* worst = nullptr;  ///< kernels/gradients.hpp: noted as stage 0 if a loss isn't finite; null: not
};
/// One launch: one warp per sample; the last block adds up.
cudaError_t softmax_cross_entropy(const SoftmaxLoss& loss, cudaStream_t stream);

}  // namespace convoy::cuda
