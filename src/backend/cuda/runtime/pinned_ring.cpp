// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/pinned_ring.hpp"

namespace convoy::cuda {

PinnedRing::PinnedRing(Queue& queue, void* to, Index bytes, const char* what)
    : queue_(queue),
      to_(to),
      bytes_(bytes),
      stride_((bytes + 63) / 64 * 64),
      memory_(queue.allocate_host(stride_ * static_cast<Index>(slots), what)) {}

std::byte* PinnedRing::begin() {
  queue_.wait(taken_[next_]);
  return memory_ + static_cast<Index>(next_) * stride_;
}

void PinnedRing::post() {
  queue_.post(to_, memory_ + static_cast<Index>(next_) * stride_, bytes_, &taken_[next_]);
  next_ = (next_ + 1) % slots;
}

}  // namespace convoy::cuda
