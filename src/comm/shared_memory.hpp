// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace convoy {

/// Memory that all ranks of one host have in common, zeroed, aligned to a page. It belongs to no folder and no file
/// system with a quota, and is gone when the last rank has ended, however it ended.
class SharedMemory {
 public:
  SharedMemory(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* address_;
  std::size_t bytes_;
};

/// What share_memory found: the memory, or why some rank has none.
struct SharingResult {
  std::unique_ptr<SharedMemory> memory;  ///< on all ranks or on none
  std::string problem;                   ///< the same on all ranks; empty: there is memory
};

/// Collective. The ranks must be on one host and see each other's processes: ranks in containers of their own do not.
SharingResult share_memory(Communicator& communicator, std::size_t bytes);

}  // namespace convoy
