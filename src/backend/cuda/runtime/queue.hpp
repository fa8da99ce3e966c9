// SPDX-License-Identifier: Apache-2.0
// The device as a queue: streams, events, memory, copies, captured graphs. Nothing here waits for the device except
// what says so.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/cuda/runtime/events.hpp"
#include "core/function_ref.hpp"

namespace convoy::cuda {

/// compute: everything a program launches, in order, but what goes beside it: work that nothing waits for before its
/// stage ends. communication: downloads and NCCL. upload: rows of images ahead of the step that reads them.
enum class Stream : std::uint8_t { compute, beside, communication, upload };
constexpr int stream_count = 4;

class Queue {
 public:
  /// On the current device. Throws Error(device).
  Queue();
  /// Waits for what is queued, unless an error is on its way out: then the device may never finish (a sum whose peer is
  /// gone), and the process that ends frees everything.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  cudaStream_t stream(Stream stream = Stream::compute) const { return streams_[static_cast<std::size_t>(stream)]; }

  /// The end of what is queued so far. While a graph is captured: see EventRing::record_captured.
  Event record(Stream stream = Stream::compute);
  bool done(Event event) { return events_.done(event); }
  /// Later work of `stream` waits for the event.
  void follow(Stream stream, Event event) { events_.follow(this->stream(stream), event); }
  /// The host polls until the event has passed: at set-up, and where a ring of buffers is full. A job's own waits go
  /// through Collectives::await, with its deadline.
  void wait(Event event);

  /// The newest upload of rows of images, whatever program it is for: their owner may overwrite the rows before them
  /// once it hands over new ones.
  Event last_rows() const { return last_rows_; }
  void set_last_rows(Event uploaded) { last_rows_ = uploaded; }

  /// Set-up only. Zeroed, on 256 bytes, freed with the queue. Throws Error(device): how much, and what to lower.
  std::byte* allocate(Index bytes, const char* what);
  /// Whether a block that a job can do without fits beside what it can't.
  bool has_room(Index bytes) const;
  /// Host memory that copies reach without staging; zeroed, on 64 bytes, freed with the queue.
  std::byte* allocate_host(Index bytes, const char* what);
  bool is_pinned(const void* host, Index bytes) const;

  /// Copies of pinned host memory, device memory; queued.
  void to_device(void* to, const void* from, Index bytes, Stream stream = Stream::compute);
  void to_host(void* to, const void* from, Index bytes, Stream stream);
  void clear(void* at, Index bytes, Stream stream = Stream::compute);
  /// Numbers in pinned memory go to device memory (both on 16 bytes, a multiple of 4) with the next deliver(). It sets
  /// `taken` to the event behind which the pinned memory is free again.
  void post(void* to, const void* from, Index bytes, Event* taken);
  /// One launch reads all that was posted where it lies: no copy of a few bytes waits behind a large upload. Nothing is
  /// posted while a graph is captured; replay() delivers before.
  void deliver();

  /// Set-up only: from any host memory, behind what the compute stream has queued; waits until it is there.
  void upload_now(void* to, const void* from, Index bytes);

  /// The first call of a key runs body (libraries load their kernels then), the second captures and launches it, later
  /// ones launch the graph. Inside of another replay body runs, and so becomes part of what is captured.
  void replay(std::uint64_t key, FunctionRef body);
  /// What body queues in the compute stream, captured; the caller destroys it. replay() keeps its own.
  cudaGraphExec_t capture(FunctionRef body);
  /// Keys are new again. A graph that runs is freed when it has run.
  void forget_graphs() noexcept;
  bool capturing() const { return capturing_; }
  Index graph_launches() const { return graph_launches_; }
  /// Counts allocations of device and pinned memory.
  Index allocations() const { return static_cast<Index>(device_blocks_.size() + pinned_.size()); }

 private:
  struct Pinned {
    std::byte* begin;
    Index bytes;
  };

  cudaStream_t streams_[stream_count] = {};
  EventRing events_;
  Event last_rows_;
  std::vector<std::byte*> device_blocks_;
  std::vector<Pinned> pinned_;
  std::byte* bounce_ = nullptr;  ///< copies of memory that isn't pinned pass through it
  std::unordered_map<std::uint64_t, cudaGraphExec_t> graphs_;
  struct Letter {
    void* to;
    const void* from;
    Index bytes;
    Event* taken;
  };
  std::vector<Letter> letters_;
  bool capturing_ = false, inside_ = false;
  Index graph_launches_ = 0;
  const int exceptions_;
};

}  // namespace convoy::cuda
