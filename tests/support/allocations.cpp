// SPDX-License-Identifier: Apache-2.0
// Counts operator new of this program; what libraries take for themselves is not ours.
#include "support/allocations.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {
std::atomic<long> allocations{0}, allocated_bytes{0};

/// Libraries whose own use of operator new lands here too.
bool from_library(const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libgomp") != nullptr;
}

void* counted(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (!from_library(caller)) {
    ++allocations;
    allocated_bytes += static_cast<long>(bytes);
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) != 0) throw std::bad_alloc();
  return memory;
}
}  // namespace

namespace convoy {
long count_allocations() { return allocations; }
long count_allocated_bytes() { return allocated_bytes; }
}  // namespace convoy

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t), __builtin_return_address(0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, alignof(std::max_align_t), __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
