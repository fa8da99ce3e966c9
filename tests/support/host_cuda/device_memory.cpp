// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>
#include <iterator>
#include <map>
#include <vector>

#include "support/host_cuda/streams.hpp"

namespace host_cuda {
namespace {

constexpr std::size_t page = 4096, red_zone = 256;

struct Span {
  std::size_t begin, end;
};

struct DeviceMemory {
  std::size_t low = 0, used = 0, size = std::size_t{1} << 36;  ///< all live blocks lie in [low, used)
  /// The same, without the long gaps that freed blocks leave: to open those, too, takes longer than all arithmetic.
  std::vector<Span> spans;
  char* base = static_cast<char*>(mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::map<const void*, std::size_t> live, pinned;
  int users = 0;
} memory;

void protect(int rights) {
  for (const Span& span : memory.spans) mprotect(memory.base + span.begin, span.end - span.begin, rights);
}

/// After `live` has changed.
void find_spans() {
  constexpr std::size_t long_gap = 1 << 20;
  memory.spans.clear();
  for (const auto& [begin, bytes] : memory.live) {
    const auto at = static_cast<std::size_t>(static_cast<const char*>(begin) - memory.base);
    const std::size_t from = (at - red_zone) / page * page, to = (at + bytes + red_zone + page - 1) / page * page;
    if (!memory.spans.empty() && from <= memory.spans.back().end + long_gap)
      memory.spans.back().end = to;
    else
      memory.spans.push_back({from, to});
  }
  memory.low = memory.spans.empty() ? memory.used : memory.spans.front().begin;
}

bool is_pinned(const void* pointer, std::size_t bytes) {
  const auto after = memory.pinned.upper_bound(pointer);
  if (after == memory.pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return static_cast<const char*>(pointer) + bytes <= static_cast<const char*>(begin) + size;
}

}  // namespace

OpenMemory::OpenMemory() {
  if (memory.users++ == 0) protect(PROT_READ | PROT_WRITE);
}
OpenMemory::~OpenMemory() {
  if (--memory.users == 0) protect(PROT_NONE);
}

void free_everything() {
  while (!memory.live.empty()) cudaFree(const_cast<void*>(memory.live.begin()->first));
  while (!memory.pinned.empty()) cudaFreeHost(const_cast<void*>(memory.pinned.begin()->first));
}

bool is_device(const void* pointer) {
  return pointer >= memory.base + memory.low && pointer < memory.base + memory.used;
}

}  // namespace host_cuda

using namespace host_cuda;

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const Inside inside;
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  ++counts().allocations;
  const std::size_t at = memory.used + red_zone - memory.used % 256;
  const std::size_t end = (at + bytes + red_zone + page - 1) / page * page;
  if (end > memory.size || bytes > memory.size) return note_error(cudaErrorMemoryAllocation);
  memory.used = end;
  *pointer = memory.base + at;
  memory.live[*pointer] = bytes;
  find_spans();
  const OpenMemory open;
  std::memset(*pointer, 0xff, bytes);  // NaN
  poison(memory.base + at + bytes, end - at - bytes);
  return cudaSuccess;
}

/// Waits, as CUDA does. The address is never given out again.
cudaError_t cudaFree(void* pointer) {
  const Inside inside;
  if (pointer == nullptr) return cudaSuccess;
  const auto found = memory.live.find(pointer);
  if (found == memory.live.end()) return note_error(cudaErrorInvalidValue);
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  demand_all();
  poison(pointer, found->second);
  const auto begin = (reinterpret_cast<std::uintptr_t>(pointer) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(pointer) + found->second) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  memory.live.erase(found);
  find_spans();
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  const Inside inside;
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  ++counts().allocations;
  const std::size_t size = (bytes + page) / page * page;
  *pointer = std::aligned_alloc(page, size);
  std::memset(*pointer, 0xff, size);
  memory.pinned[*pointer] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  const Inside inside;
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  demand_all();
  memory.pinned.erase(pointer);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = memory.size;
  *free_bytes = memory.size - memory.used;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Inside inside;
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (kind == cudaMemcpyDefault || kind == cudaMemcpyHostToHost) fail("cudaMemcpyAsync: name a direction");
  if (kind == cudaMemcpyDeviceToHost ? !is_pinned(to, bytes) : !is_device(to))
    fail("cudaMemcpyAsync: wrong kind of target, or not pinned");
  if (kind == cudaMemcpyHostToDevice ? !is_pinned(from, bytes) : !is_device(from))
    fail("cudaMemcpyAsync: wrong kind of source, or not pinned");
  ++counts().copies;
  return enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  const Inside inside;
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (!is_device(at)) fail("cudaMemsetAsync: not device memory");
  return enqueue(stream, [=] { std::memset(at, value, bytes); });
}
}
