// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

/// Numbers that change from step to step on their way to fixed device memory: written into a free slot of pinned
/// memory, from which a kernel takes them in stream order. The slot is used again once that ran.
class PinnedRing {
 public:
  /// `to`: device memory of `bytes`, a multiple of 4. Set-up only.
  PinnedRing(Queue& queue, void* to, Index bytes, const char* what);

  /// A free slot; polls where all are on their way (the host is `slots` steps ahead then).
  std::byte* begin();
  /// What was written since begin() goes with the queue's next delivery. The ring stays where it is until then.
  void post();

 private:
  static constexpr std::size_t slots = 4;
  Queue& queue_;
  void* to_;
  Index bytes_, stride_;
  std::byte* memory_;
  std::array<Event, slots> taken_{};
  std::size_t next_ = 0;
};

}  // namespace convoy::cuda
