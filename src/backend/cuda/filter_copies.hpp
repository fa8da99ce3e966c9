// SPDX-License-Identifier: Apache-2.0
// Filters as convolutions read them: KRSC in storage, beside the canonical master (KCRS, fp32). Written by the update,
// rebuilt by refresh; each parameter set has its own.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/kernels/update.hpp"
#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

inline Storage storage_of(Precision precision) {
  return precision == Precision::fp16 ? Storage::f16 : precision == Precision::bf16 ? Storage::bf16 : Storage::f32;
}

/// Channels of the network input in memory: 3 -> 4, for the stem's weight gradient.
constexpr Index image_channels(Index channels) { return (channels + 3) / 4 * 4; }

/// Per row of the parameter table. A linear layer's weight counts as a filter over the pixels of what is flattened.
struct FilterCopy {
  Index offset = -1;  ///< elements from the start of the copies, a multiple of 64; -1: no copy
  Index k = 0, c = 0, rs = 1;
  Index stored_c = 0;  ///< c, or image_channels(c) where the input is read; the rest is 0
  bool operator==(const FilterCopy&) const = default;
};

struct CopyLayout {
  std::vector<FilterCopy> rows;
  Index elements = 0;
  Storage storage = Storage::f32;
  std::vector<UpdatePiece>
      pieces;  ///< all tensors in slices, for the kernels of kernels/update.hpp; the same for every storage
  /// Compares the copies alone: decay and rates don't count.
  bool operator==(const CopyLayout& other) const;
};

CopyLayout make_copy_layout(const Plan& plan, Precision precision);

/// The copies of every set in use.
class FilterCopies {
 public:
  explicit FilterCopies(Queue& queue) : queue_(queue) {}

  /// Sets that are refreshed from now on have this layout (that of the last program compiled). Any thread.
  std::shared_ptr<const CopyLayout> use(const Plan& plan, Precision precision);
  /// Writes the copies of a set, in stream order; the first time it allocates them (set-up).
  void refresh(const ParameterSet& set);

  struct Copies {
    const float* block = nullptr;
    std::shared_ptr<const CopyLayout> layout;
    std::byte* memory = nullptr;
    const UpdatePiece* pieces = nullptr;  ///< device memory
  };
  /// Null where the set was never refreshed. Allocates nothing.
  const Copies* find(const float* block) const;
  /// The copies of a set in this layout, for a program. Throws Error(internal) where the set wasn't refreshed.
  const std::byte* at(const ParameterSet& set, const CopyLayout& layout) const;

 private:
  Copies& own_copies(const float* block, const std::shared_ptr<const CopyLayout>& layout);

  Queue& queue_;
  mutable std::mutex mutex_;
  std::shared_ptr<const CopyLayout> layout_;
  std::vector<Copies> sets_;
};

}  // namespace convoy::cuda
