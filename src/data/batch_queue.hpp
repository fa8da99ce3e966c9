// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "core/clock.hpp"

namespace convoy {

/// Memory of one batch.
struct BatchSlot {
  std::vector<SampleSpec> specs;
  std::uint8_t* images = nullptr;  ///< null where images lie elsewhere
  Index count = 0;                 ///< samples; the preparer's to set
};

/// Memory for images, at least 64-byte aligned, that outlives the queue (pinned, for a GPU). Null, or no function: the
/// queue's own.
using ImageMemory = std::function<std::uint8_t*(std::size_t bytes)>;

struct BatchQueueSpec {
  int workers = 1;  ///< threads that prepare batches ahead; 0: next() prepares them itself
  int prefetch = 4;
  Index batch = 0;
  std::size_t image_bytes = 0;  ///< of a whole batch; 0: no memory for images
  ImageMemory memory;
  Clock* clock = &real_clock();
};

/// Batches numbered by tickets 0, 1, ..., prepared ahead by threads and taken in order. A preparer's error is thrown by
/// the call that asks for its batch.
class BatchQueue {
 public:
  /// Fills a slot; `worker`: 0 .. max(workers, 1) - 1, each called by one thread at a time.
  using Prepare = std::function<void(Index ticket, int worker, BatchSlot& slot)>;
  BatchQueue(const BatchQueueSpec& spec, Prepare prepare);
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  /// Ends what is in work, lets `change` alter what prepare reads, and starts from ticket 0.
  void begin(Index tickets, const std::function<void()>& change);
  /// Tickets may be left out, not asked for twice. The slot stays as it is until the next-but-one call.
  const BatchSlot& next(Index ticket);
  Index newest() const;  ///< the last ticket given out; -1: none
  /// Seconds next() has waited since the last call.
  double take_wait_seconds();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy
