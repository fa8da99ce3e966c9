// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include "backend/backend.hpp"
#include "backend/cuda/kernels/types.hpp"
#include "backend/cuda/runtime/pinned_ring.hpp"

namespace convoy::cuda {

SampleRow row_of(const SampleSpec& sample);

/// What a Program's feed() does: numbers, samples and rows of images into fixed device memory. Rows of images go ahead
/// in the upload stream, into two buffers by turns, so that they travel while the step before computes.
class Feed {
 public:
  struct Spec {
    Index samples = 0;
    Index image_bytes = 0;  ///< the size of a stored image
  };
  /// Touches no device.
  explicit Feed(const Spec& spec) : spec_(spec) {}

  /// What it takes of the arena, which lies on 16 bytes.
  Index device_bytes() const;
  /// Set-up only; `memory`: device_bytes(). Programs that are fed in turns may share it, since each is fed before it
  /// is launched.
  void bind(Queue& queue, std::byte* memory);

  /// Acts in stream order. `resident` is the device memory of the set that a batch without rows is of. Pinned
  /// rows (allocate_host) are copied from where they lie, others are copied aside first. The first rows that come make
  /// room for rows on the device.
  void send(const Batch& batch, const std::uint8_t* resident);

  const FeedNumbers* numbers() const;
  const SampleRow* rows() const;

 private:
  struct Rows {
    std::byte* device = nullptr;
    std::byte* pinned = nullptr;  ///< made once rows come that aren't pinned
    Event uploaded;
  };
  const std::uint8_t* upload_rows(const std::uint8_t* images);

  Spec spec_;
  Queue* queue_ = nullptr;
  std::byte* memory_ = nullptr;
  std::optional<PinnedRing> ring_;
  Rows image_rows_[2];
  std::size_t turn_ = 0;
  Event before_last_;  ///< all that was queued when the rows before were sent
};

}  // namespace convoy::cuda
