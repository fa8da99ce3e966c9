// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/queue.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "backend/cuda/kernels/flat.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// Memory that isn't pinned passes through a buffer of this size.
constexpr Index bounce_bytes = 4 << 20;
constexpr double mebi = 1048576;

}  // namespace

Queue::Queue() : exceptions_(std::uncaught_exceptions()) {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "asking for the priorities of streams");
  for (const Stream kind : {Stream::compute, Stream::beside, Stream::communication, Stream::upload}) {
    // Streams that others wait for get a higher priority (a smaller number): communication the highest, then compute.
    const int priority = kind == Stream::communication ? highest
                         : kind == Stream::compute     ? std::max(lowest - 1, highest)
                                                       : lowest;
    check(cudaStreamCreateWithPriority(&streams_[static_cast<std::size_t>(kind)], cudaStreamNonBlocking, priority),
          "making a stream");
  }
  bounce_ = allocate_host(bounce_bytes, "the buffer for set-up");
  letters_.reserve(Delivery::most_parts);
}

Queue::~Queue() {
  if (std::uncaught_exceptions() > exceptions_) return;
  // Errors have been reported where they happened; here they must not hide them.
  cudaDeviceSynchronize();
  forget_graphs();
  for (std::byte* block : device_blocks_) cudaFree(block);
  for (const Pinned& block : pinned_) cudaFreeHost(block.begin);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

Event Queue::record(Stream stream) {
  return capturing_ ? events_.record_captured(this->stream(stream)) : events_.record(this->stream(stream));
}

void Queue::wait(Event event) {
  while (!done(event)) std::this_thread::yield();
}

std::byte* Queue::allocate(Index bytes, const char* what) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, static_cast<std::size_t>(std::max<Index>(bytes, 1)));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t left = 0, all = 0;
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) cudaGetLastError();
    fail(
        Exit::device,
        "GPU memory is out: {} needs {:.0f} MiB, {:.0f} of {:.0f} MiB are left; lower --batch-size or --eval-batch-size, or take more GPUs",
        what, static_cast<double>(bytes) / mebi, static_cast<double>(left) / mebi, static_cast<double>(all) / mebi);
  }
  check(error, "allocating GPU memory");
  device_blocks_.push_back(static_cast<std::byte*>(block));
  clear(block, bytes);
  return device_blocks_.back();
}

bool Queue::has_room(Index bytes) const {
  std::size_t left = 0, all = 0;
  check(cudaMemGetInfo(&left, &all), "asking for the GPU's memory");
  // The other half is for what a job allocates after its samples: sets, slots of sums, graphs.
  return static_cast<std::size_t>(bytes) <= left / 2;
}

std::byte* Queue::allocate_host(Index bytes, const char* what) {
  void* block = nullptr;
  const cudaError_t error = cudaMallocHost(&block, static_cast<std::size_t>(std::max<Index>(bytes, 1)));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(
        Exit::device,
        "pinned memory is out: {} needs {:.0f} MiB; ask for more memory of the job, lower --prefetch, or look at 'ulimit -l'",
        what, static_cast<double>(bytes) / mebi);
  }
  check(error, "allocating pinned memory");
  pinned_.push_back({static_cast<std::byte*>(block), bytes});
  std::memset(block, 0, static_cast<std::size_t>(bytes));
  return pinned_.back().begin;
}

bool Queue::is_pinned(const void* host, Index bytes) const {
  const auto* const begin = static_cast<const std::byte*>(host);
  return std::any_of(pinned_.begin(), pinned_.end(), [&](const Pinned& block) {
    return begin >= block.begin && begin + bytes <= block.begin + block.bytes;
  });
}

void Queue::to_device(void* to, const void* from, Index bytes, Stream stream) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, this->stream(stream)),
        "a copy to the GPU");
}

void Queue::to_host(void* to, const void* from, Index bytes, Stream stream) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, this->stream(stream)),
        "a copy from the GPU");
}

void Queue::clear(void* at, Index bytes, Stream stream) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(at, 0, static_cast<std::size_t>(bytes), this->stream(stream)), "clearing GPU memory");
}

void Queue::post(void* to, const void* from, Index bytes, Event* taken) {
  require(!capturing_, "numbers of a step are sent while the step is captured");
  const auto same = [&](const Letter& letter) { return letter.to == to; };
  if (letters_.size() == Delivery::most_parts || std::any_of(letters_.begin(), letters_.end(), same)) deliver();
  letters_.push_back({to, from, bytes, taken});
}

void Queue::deliver() {
  if (letters_.empty()) return;
  require(!capturing_, "numbers of a step are delivered while the step is captured");
  Delivery delivery;
  for (std::size_t i = 0; i < letters_.size(); ++i)
    delivery.parts[i] = {letters_[i].to, letters_[i].from, letters_[i].bytes};
  check(cuda::deliver(delivery, stream()), "the delivery of a step's numbers");
  const Event taken = record();
  for (const Letter& letter : letters_) *letter.taken = taken;
  letters_.clear();
}

void Queue::upload_now(void* to, const void* from, Index bytes) {
  for (Index at = 0; at < bytes; at += bounce_bytes) {
    const Index count = std::min(bounce_bytes, bytes - at);
    std::memcpy(bounce_, static_cast<const std::byte*>(from) + at, static_cast<std::size_t>(count));
    to_device(static_cast<std::byte*>(to) + at, bounce_, count);
    wait(record());
  }
}

void Queue::replay(std::uint64_t key, FunctionRef body) {
  if (inside_) return body();
  deliver();
  const auto [at, is_new] = graphs_.try_emplace(key, nullptr);
  if (is_new) {
    inside_ = true;
    try {
      body();
    } catch (...) {
      inside_ = false;
      throw;
    }
    inside_ = false;
    return;
  }
  if (at->second == nullptr) at->second = capture(body);
  check(cudaGraphLaunch(at->second, stream()), "launching a captured step");
  ++graph_launches_;
}

void Queue::forget_graphs() noexcept {
  for (const auto& [key, graph] : graphs_)
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

cudaGraphExec_t Queue::capture(FunctionRef body) {
  // Other threads (a loader, a compilation) may go on calling CUDA.
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "beginning to capture a step");
  inside_ = capturing_ = true;
  const auto end = [this] {
    inside_ = capturing_ = false;
    events_.forget_captured();
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream(), &graph);
    return std::pair(graph, error);
  };
  try {
    body();
  } catch (...) {
    const auto [graph, error] = end();
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  const auto [graph, error] = end();
  check(error, "capturing a step");
  cudaGraphExec_t exec = nullptr;
  // Without it all nodes would have the priority of the stream that the graph is launched in.
  const cudaError_t made = cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  check(made, "making a graph of a captured step");
  return exec;
}

}  // namespace convoy::cuda
