// SPDX-License-Identifier: Apache-2.0
// Runs CUDA C++ on the host, for tests: kernels (the threads of a block are fibers) and a stand-in for the CUDA runtime
// whose streams are lazy. A .cu compiled as C++ includes this through backend/cuda/kernels/launch.cuh; it is C++17. The
// stand-in's own files are never compiled with -fsanitize=thread. One host thread uses CUDA. A violated contract
// aborts.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's names
// A host compiler sees __global__ as an unknown attribute, and __launch_bounds__ not at all.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static  // the bounds of plain statics are guarded, not of those in a section of their own
#else
#define __shared__ static __attribute__((section("host_cuda_shared")))  // filled with NaN before every block
#endif

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
constexpr int warpSize = 32;
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
namespace host_cuda {

/// Order of threads, warps and blocks, and of queued work that events leave open. Tests run in all four: a missing
/// barrier or event shows in at least one. eager runs work when it is queued, the others only when somebody waits for
/// it, and then only what that needs.
enum class Order { forward, reverse, shuffled, eager };
constexpr Order all_orders[] = {Order::forward, Order::reverse, Order::shuffled, Order::eager};

struct Settings {
  Order order = Order::forward;
  unsigned seed = 1;
  long drop_wait = -1;  ///< this cudaStreamWaitEvent, counted from 0, is forgotten
  long fail_call = -1;  ///< this call that can fail, counted from 0, returns `error`
  cudaError_t error = cudaErrorMemoryAllocation;
};
Settings& settings();

struct Counts {
  long allocations = 0, kernels = 0, graph_launches = 0, copies = 0, waits = 0, syncs = 0, calls = 0;
  long own_allocations = 0;  ///< operator new inside of the stand-in, where support/allocations.cpp counts
};
Counts& counts();

/// Settings and counts as at first, but for the order and a wait that is forgotten.
void start_without(long wait, Order order);
/// Whether that wait changes nothing: all that was queued behind it comes behind the event all the same, by other waits
/// or because the host waited. Exact; not of the eager order.
bool forgot_needless_wait();

/// Around what the stand-in does, so that its own allocations can be told from those of the code under test.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  long before_;
};

/// Queues host work on device memory, as a library such as cuDNN would queue its kernel. Captured like one.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
bool is_device(const void* pointer);
/// After a test that failed inside a capture.
void abandon_captures();
/// After an error, once all that used CUDA is gone: forgets what is queued and frees what was not freed on the way out.
void abandon_all();
[[noreturn]] void fail(const char* what);

cudaError_t check_launch(dim3 grid, dim3 block, std::size_t shared_bytes);
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, void (*thread)(const void*), const void* closure);
void* dynamic_shared();  ///< filled with NaN before every block

enum class Warp { shuffle, ballot, sync };
/// Waits until every lane of `mask` is here. The result: source's value (shuffle), or the lanes whose value isn't 0.
std::uint64_t warp(Warp kind, unsigned mask, std::uint64_t value, int source, int line);
void barrier(int line);
int lane();

template <class T>
void require_device(const T& argument) {
  if constexpr (std::is_pointer_v<T>) {
    if (argument != nullptr && !is_device(argument)) fail("a kernel's argument points to memory of the host");
  }
}

/// kernel<<<grid, block, shared_bytes, stream>>>(args...). Pointers among the arguments are device memory or null.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   A... args) {
  const Inside inside;
  if (const cudaError_t error = check_launch(grid, block, shared_bytes); error != cudaSuccess) return error;
  (require_device<std::decay_t<P>>(static_cast<P>(args)), ...);
  const auto call = [=] { kernel(static_cast<P>(args)...); };
  return enqueue(stream, [=] {
    run_grid(
        grid, block, shared_bytes, [](const void* closure) { (*static_cast<const decltype(call)*>(closure))(); },
        &call);
  });
}

template <class T>
T shuffle(unsigned mask, T value, int source, int line) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const void*>(&value), sizeof(T));
  bits = warp(Warp::shuffle, mask, bits, source >= 0 && source < 32 ? source : lane(), line);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

}  // namespace host_cuda
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
// What device code may call; the list grows with the kernels. Shuffles of a full width only.
inline void __syncthreads(int line = __builtin_LINE()) { host_cuda::barrier(line); }
inline void __syncwarp(unsigned mask = ~0U, int line = __builtin_LINE()) {
  host_cuda::warp(host_cuda::Warp::sync, mask, 0, 0, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<unsigned>(host_cuda::warp(host_cuda::Warp::ballot, mask, predicate != 0 ? 1 : 0, 0, line));
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int line = __builtin_LINE()) {
  return host_cuda::shuffle(mask, value, from & 31, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int line = __builtin_LINE()) {
  return host_cuda::shuffle(mask, value, host_cuda::lane() ^ lanes, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance, int line = __builtin_LINE()) {
  return host_cuda::shuffle(mask, value, host_cuda::lane() + distance, line);
}
template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
// Blocks run one after the other: what one wrote the next ones see.
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* to, unsigned last) {
  const unsigned old = *to;
  *to = old >= last ? 0 : old + 1;
  return old;
}
template <class T, class U>
T atomicAdd(T* to, U value) {
  T old, sum;
  __atomic_load(to, &old, __ATOMIC_RELAXED);
  do {
    sum = old + static_cast<T>(value);
  } while (!__atomic_compare_exchange(to, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
inline int atomicMin(int* to, int value) {
  int old = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (value < old && !__atomic_compare_exchange_n(to, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
