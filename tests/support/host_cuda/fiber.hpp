// SPDX-License-Identifier: Apache-2.0
// Fibers, and what sanitizers must be told of them. x86-64 only: the switch is 15 instructions of assembly.
#pragma once
#include <cstddef>

namespace host_cuda {

struct Fiber {
  void* stack_pointer = nullptr;
  const void* stack = nullptr;
  std::size_t size = 0;
  void *fake_stack = nullptr, *thread = nullptr;  ///< the address and the thread sanitizer's
};

/// The fiber that runs; at first the host's own.
Fiber* current_fiber();
/// Makes a fiber that begins with landed(), runs `entry` and never returns.
void make_fiber(Fiber& fiber, std::size_t stack_bytes, void (*entry)());
/// First thing in a new fiber.
void landed();
/// Goes on in another fiber until somebody goes back to this one.
void go(Fiber& to);

/// Happens-before, for the thread sanitizer: exactly what stream order, events, barriers and kernel borders promise,
/// never the order of execution. `at` is only an address.
void acquire(void* at);
void release(void* at);
bool watches_threads();

/// Bounds, for the address sanitizer.
void poison(void* begin, std::size_t bytes);
void unpoison(void* begin, std::size_t bytes);

}  // namespace host_cuda
