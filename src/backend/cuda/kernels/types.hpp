// SPDX-License-Identifier: Apache-2.0
// What kernels and those who launch them share. The headers of this folder are C++17, since .cu files include them.
// Spatial tensors are NHWC and packed: rows (n h w) times channels, any number of channels; 16-byte accesses are used
// where a row is a multiple of 16 bytes. Tensors start on 16 bytes. Arithmetic is in float. Every launcher queues and
// returns at once; it may be captured.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/counters.hpp"
#include "network/operations/activation_kind.hpp"
#include "optim/rule.hpp"

namespace convoy {
using Index = std::int64_t;
}

namespace convoy::cuda {

/// Elements of activations, filter copies and their gradients in memory.
enum class Storage : std::uint8_t { f32, bf16, f16 };

constexpr Index bytes_of(Storage storage) { return storage == Storage::f32 ? 4 : 2; }

/// Which rule of backend/rules/activation.hpp; identity: no activation.
struct ActivationRule {
  ActivationKind kind = ActivationKind::identity;
  float slope = 0;  ///< leaky_relu alone has one
};

/// Numbers of the batch in device memory (runtime/feed.hpp writes them): what kernels read instead of arguments, since
/// a captured launch keeps its arguments.
struct FeedNumbers {
  Index valid = 0;                       ///< samples that count; the rest is masked
  std::int32_t replica = 0;              ///< its slot among the flags
  float scale = 0;                       ///< multiplies each sample's loss
  float weight = 0;                      ///< what this replica's statistics weigh in the tail: valid * scale
  double shared = 0;                     ///< samples that share batch-norm statistics
  const std::uint8_t* images = nullptr;  ///< device memory: rows n h w c, or the resident set
};

/// SampleSpec in device memory.
struct SampleRow {
  Index sample = 0, position = 0;
  std::int32_t partner = -1, a = 0, b = 0;
  float lambda = 1;
  std::int16_t y = 0, x = 0, erase_y = 0, erase_x = 0, erase_h = 0, erase_w = 0;
  std::int16_t mix_y = 0, mix_x = 0, mix_h = 0, mix_w = 0;
  std::int16_t flip = 0, vertical_flip = 0;
};

/// StepParams in device memory.
struct StepNumbers {
  float learning_rate = 0, ema_decay = 0;
  std::uint64_t seed = 0;
  Index step = 0;
  OptionValues options;
};

}  // namespace convoy::cuda
