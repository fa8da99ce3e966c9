// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "support/host_cuda/fiber.hpp"

namespace host_cuda {

constexpr int block_threads = 1024, shared_limit = 49152;

/// The threads of a stream's kernels. Each stream has its own, else the thread sanitizer would take two streams'
/// threads for one and miss races between them.
struct Pool {
  Fiber self;  ///< runs what the stream has queued
  Fiber fibers[block_threads], *idle[block_threads];
  int started = 0, idles = 0;
  std::uint64_t fusion[2] = {}, barrier[2] = {}, warps[32] = {};  ///< addresses for acquire and release
  alignas(16) unsigned char shared[shared_limit];
};

/// The pool whose stream runs now. Returns the one before.
Pool* use_pool(Pool* pool);

}  // namespace host_cuda
