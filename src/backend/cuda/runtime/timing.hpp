// SPDX-License-Identifier: Apache-2.0
// How long work takes on the device: for tuning, profiles and ceilings. A training step takes no times.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "backend/cuda/runtime/queue.hpp"
#include "core/clock.hpp"
#include "core/types.hpp"

namespace convoy::cuda {

/// Zeroed device memory that goes when measuring is over. Throws Error(device) where there is too little.
class Scratch {
 public:
  Scratch(Queue& queue, Index bytes);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  std::byte* at(Index offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  Queue& queue_;
  void* memory_ = nullptr;
};

/// A buffer's bytes, so that the next one begins aligned.
inline Index rounded(Index bytes) { return (bytes + 255) / 256 * 256; }

/// The least seconds of some runs of what `body` queues, after one that warms up.
template <class Body>
double seconds_of(Queue& queue, const Body& body) {
  constexpr int repetitions = 4;
  double least = 0;
  queue.wait(queue.record());
  for (int i = 0; i <= repetitions; ++i) {
    const Instant begin = real_clock().now();
    body();
    queue.wait(queue.record());
    const double seconds = seconds_since(begin);
    if (i == 1 || (i > 1 && seconds < least)) least = seconds;
  }
  return least;
}

/// Begin and end of numbered pieces of work in one stream, by the device's clock.
class PartTimer {
 public:
  explicit PartTimer(std::size_t parts);
  ~PartTimer();
  PartTimer(const PartTimer&) = delete;
  PartTimer& operator=(const PartTimer&) = delete;

  void begin(std::size_t part, cudaStream_t stream);
  void end(std::size_t part, cudaStream_t stream);
  /// Of each part's last run; 0 for one that never ran. The stream must have passed them.
  std::vector<double> seconds() const;

 private:
  struct Part {
    cudaEvent_t begin = nullptr, end = nullptr;
    bool ran = false;
  };
  std::vector<Part> parts_;
};

}  // namespace convoy::cuda
