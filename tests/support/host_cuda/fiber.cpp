// SPDX-License-Identifier: Apache-2.0
#include "support/host_cuda/fiber.hpp"

#include <sys/mman.h>

#include <utility>

#include "support/host_cuda/host_cuda.hpp"

#define WEAK __attribute__((weak))  // null unless the sanitizer is linked
extern "C" {
WEAK void __sanitizer_start_switch_fiber(void**, const void*, std::size_t);
WEAK void __sanitizer_finish_switch_fiber(void*, const void**, std::size_t*);
WEAK void __asan_poison_memory_region(void const volatile*, std::size_t);
WEAK void __asan_unpoison_memory_region(void const volatile*, std::size_t);
WEAK void* __tsan_create_fiber(unsigned);
WEAK void* __tsan_get_current_fiber();
WEAK void __tsan_switch_to_fiber(void*, unsigned);
WEAK void __tsan_acquire(void*);
WEAK void __tsan_release(void*);
/// Saves the callee-saved registers and the stack pointer in *from and goes on where `to` was saved.
void host_cuda_switch(void** from, void* to);
}
asm(".text\n"
    "host_cuda_switch:\n"
    "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15; movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp; popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret\n");

namespace host_cuda {
namespace {

Fiber host;
Fiber *here = &host, *before = nullptr;

}  // namespace

Fiber* current_fiber() { return here; }

void landed() {
  const void* stack = nullptr;
  std::size_t size = 0;
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(here->fake_stack, &stack, &size);
  if (before->stack == nullptr) {  // the host's own stack, learnt at the first switch
    before->stack = stack;
    before->size = size;
  }
}

void go(Fiber& to) {
  before = std::exchange(here, &to);
  if (before->thread == nullptr && __tsan_get_current_fiber != nullptr) before->thread = __tsan_get_current_fiber();
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(&before->fake_stack, to.stack, to.size);
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to.thread, 1);  // 1: no happens-before
  host_cuda_switch(&before->stack_pointer, to.stack_pointer);
  landed();
}

void make_fiber(Fiber& fiber, std::size_t stack_bytes, void (*entry)()) {
  constexpr std::size_t guard = 4096;
  void* const mapped = mmap(nullptr, stack_bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("no memory, or too many mappings, for a fiber");
  char* const base = static_cast<char*>(mapped);
  mprotect(base, guard, PROT_NONE);
  fiber.stack = base + guard;
  fiber.size = stack_bytes;
  void** top = reinterpret_cast<void**>(base + guard + stack_bytes) - 1;  // as after a call: sp % 16 == 8
  *--top = reinterpret_cast<void*>(entry);
  fiber.stack_pointer = top - 6;
  if (__tsan_create_fiber != nullptr) fiber.thread = __tsan_create_fiber(0);
}

void acquire(void* at) {
  if (__tsan_acquire != nullptr) __tsan_acquire(at);
}
void release(void* at) {
  if (__tsan_release != nullptr) __tsan_release(at);
}
bool watches_threads() { return __tsan_acquire != nullptr; }

void poison(void* begin, std::size_t bytes) {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(begin, bytes);
}
void unpoison(void* begin, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(begin, bytes);
}

}  // namespace host_cuda
