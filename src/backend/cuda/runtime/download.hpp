// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backend/cuda/runtime/queue.hpp"

namespace convoy::cuda {

/// Downloads into any host memory: pieces come through a pinned buffer and are copied on when the host asks whether the
/// event has passed, so that nothing waits without the deadline of who asks. One is under way at a time; what must not
/// wait at all uses pinned memory. For checkpoints, statistics and tests.
class PagedDownload {
 public:
  explicit PagedDownload(Queue& queue);

  /// `from` stays as it is until the event has passed. Finishes an earlier download first.
  Event start(void* to, const void* from, Index bytes, Event after);
  static bool owns(Event event) { return (event.id & own_bit) != 0; }
  /// Moves what can move. True once the download of that event is in `to`.
  bool advance(Event event);

 private:
  static constexpr std::uint64_t own_bit = std::uint64_t{1} << 62;
  void next_piece();

  Queue& queue_;
  std::byte* buffer_;
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  Index left_ = 0, piece_ = 0;
  Event piece_done_;
  std::uint64_t current_ = 0;
};

}  // namespace convoy::cuda
