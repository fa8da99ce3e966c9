// SPDX-License-Identifier: Apache-2.0
// How long work takes on the device: for tuning, profiles and ceilings. A training step takes no times.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "backend/cuda/runtime/queue.hpp"
#include "core/types.hpp"

namespace convoy::cuda {

/// Zeroed device memory that is freed when measuring is over. Throws Error(device) if there is too little.
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

/// Fills memory with numbers between 0.5 and 1 of either sign. bytes: a multiple of 4.
void fill_with_noise(Queue& queue, std::byte* at, Index bytes, Precision precision);

/// A buffer's bytes, so that the next one begins aligned.
inline Index rounded(Index bytes) { return (bytes + 255) / 256 * 256; }

/// Seconds of one run of what `body` queues in the compute stream, by the device's clock: runs are captured, up to 20
/// in one graph, so that the host's time to launch them doesn't count; the median of five graphs. body(i) is the i-th
/// run in a graph, for operands that change places.
double seconds_of(Queue& queue, const std::function<void(int run)>& body);

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
