// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a grid one after the other. A fiber runs one thread after another until one has to wait, so
// kernels without barriers need a single fiber.
#include "support/host_cuda/runner.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "support/host_cuda/host_cuda.hpp"

extern char __start_host_cuda_shared[] __attribute__((weak));  // of the linker: the section of __shared__ variables
extern char __stop_host_cuda_shared[] __attribute__((weak));

namespace host_cuda {
namespace {

struct WarpState {
  unsigned arrived, mask;
  Warp kind;
  int line, source[32];
  std::uint64_t value[32], result[32];
};

/// A set of threads. While a grid runs nothing is allocated or moved: the thread sanitizer would see it.
struct ThreadSet {
  std::uint64_t word[block_threads / 64] = {};
  void add(int thread) { word[thread / 64] |= std::uint64_t{1} << thread % 64; }
  void remove(int thread) { word[thread / 64] &= ~(std::uint64_t{1} << thread % 64); }
};

struct Runner {
  Pool* pool = nullptr;
  Fiber* fiber_of[block_threads];
  ThreadSet ready, waiting;                 // threads whose wait is over; threads at the barrier
  int order[block_threads], rank[32] = {};  // of threads; of warps when shuffled: the last one starves
  WarpState warps[32];
  void (*body)(const void*) = nullptr;
  const void* closure = nullptr;
  int threads = 0, next = 0, finished = 0, thread = 0, line = 0, at_barrier = 0;
  unsigned block = 0, generation = 0;
} runner;

void set_thread(int thread) {
  runner.thread = thread;
  const auto t = static_cast<unsigned>(thread);
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}

void thread_fiber() {
  for (landed();; go(runner.pool->self)) {
    while (runner.next < runner.threads) {
      set_thread(runner.order[runner.next++]);
      acquire(&runner.pool->fusion[runner.block & 1]);
      runner.body(runner.closure);
      release(&runner.pool->fusion[~runner.block & 1]);
      ++runner.finished;
      if (watches_threads()) break;  // there every thread has its own fiber
    }
    runner.pool->idle[runner.pool->idles++] = current_fiber();
  }
}

/// Until this thread is in `ready` and was picked.
void wait_here() {
  const int thread = runner.thread;
  runner.fiber_of[thread] = current_fiber();
  go(runner.pool->self);
  set_thread(thread);
}

/// A ready thread: the first, the last, or one of the warp with the least rank; -1: none.
int pick() {
  const Order order = settings().order;
  int best = -1;
  for (int i = 0; i < block_threads / 64; ++i) {
    const std::uint64_t word = runner.ready.word[i];
    if (word == 0) continue;
    const int low = i * 64 + __builtin_ctzll(word), high = i * 64 + 63 - __builtin_clzll(word);
    if (best < 0 || order == Order::reverse) best = order == Order::reverse ? high : low;
    if (order != Order::shuffled) continue;
    for (const int thread : {low, high})
      if (runner.rank[thread / 32] < runner.rank[best / 32]) best = thread;
  }
  if (best >= 0) runner.ready.remove(best);
  return best;
}

void next_fiber() {
  Pool& pool = *runner.pool;
  if (pool.idles == 0) {
    make_fiber(pool.fibers[pool.started], 32768, thread_fiber);
    pool.idle[pool.idles++] = &pool.fibers[pool.started++];
  }
  go(*pool.idle[--pool.idles]);
}

void run_block() {
  for (runner.next = runner.finished = 0; runner.finished < runner.threads;) {
    if (runner.next < runner.threads) {
      next_fiber();
    } else if (const int thread = pick(); thread >= 0) {
      go(*runner.fiber_of[thread]);
    } else {
      fail(runner.at_barrier > 0 ? "some threads never reach the barrier of the others"
                                 : "lanes wait for lanes of their mask for ever");
    }
  }
}

}  // namespace

Pool* use_pool(Pool* pool) { return std::exchange(runner.pool, pool); }
void* dynamic_shared() { return runner.pool->shared; }
int lane() { return runner.thread % 32; }

void barrier(int line) {
  if (runner.at_barrier > 0 && runner.line != line) fail("threads of a block wait at different barriers");
  runner.line = line;
  runner.waiting.add(runner.thread);
  void* const at = &runner.pool->barrier[runner.generation & 1];
  release(at);
  if (++runner.at_barrier == runner.threads) {
    ++runner.generation;
    runner.at_barrier = 0;
    for (int i = 0; i < block_threads / 64; ++i)
      runner.ready.word[i] |= std::exchange(runner.waiting.word[i], std::uint64_t{0});
  }
  wait_here();
  acquire(at);
}

std::uint64_t warp(Warp kind, unsigned mask, std::uint64_t value, int source, int line) {
  const int me = lane(), first = runner.thread - me;
  WarpState& w = runner.warps[first / 32];
  if ((mask >> me & 1) == 0) fail("a lane is not in its own mask");
  if (runner.threads - first < 32 && mask >> (runner.threads - first) != 0)
    fail("a mask names lanes that the block does not have");
  if (w.arrived != 0 && (w.mask != mask || w.kind != kind || w.line != line))
    fail("lanes of a warp meet in different collectives");
  w.mask = mask;
  w.kind = kind;
  w.line = line;
  w.value[me] = value;
  w.source[me] = source;
  w.arrived |= 1U << me;
  void* const at = &runner.pool->warps[first / 32];
  if (kind == Warp::sync) release(at);  // shuffles and ballots order no memory
  if (w.arrived == mask) {
    std::uint64_t votes = 0;
    for (int l = 0; l < 32; ++l)
      if ((mask >> l & 1) != 0 && w.value[l] != 0) votes |= std::uint64_t{1} << l;
    for (int l = 0; l < 32; ++l) {
      if ((mask >> l & 1) == 0) continue;
      if (kind == Warp::shuffle && (mask >> w.source[l] & 1) == 0) fail("a shuffle reads a lane outside its mask");
      w.result[l] = kind == Warp::shuffle ? w.value[w.source[l]] : votes;
      if (l != me) runner.ready.add(first + l);
    }
    w.arrived = 0;
  } else {
    wait_here();
  }
  if (kind == Warp::sync) acquire(at);
  return w.result[me];
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, void (*thread)(const void*), const void* closure) {
  static std::minstd_rand random(settings().seed);
  const bool shuffled = settings().order == Order::shuffled, reverse = settings().order == Order::reverse;
  const int threads = static_cast<int>(block.x * block.y * block.z);
  const unsigned blocks = grid.x * grid.y * grid.z;
  Pool& pool = *runner.pool;
  gridDim = grid;
  blockDim = block;
  runner.body = thread;
  runner.closure = closure;
  runner.threads = threads;
  unpoison(pool.shared, sizeof pool.shared);
  poison(pool.shared + shared_bytes, sizeof pool.shared - shared_bytes);
  for (int t = 0; t < threads; ++t) runner.order[t] = reverse ? threads - 1 - t : t;
  for (unsigned i = 0; i < blocks; ++i) {
    const unsigned b = reverse || shuffled ? blocks - 1 - i : i;
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    std::memset(pool.shared, 0xff, shared_bytes);
    if (__start_host_cuda_shared != nullptr && !watches_threads())
      std::fill(__start_host_cuda_shared, __stop_host_cuda_shared, static_cast<char>(0xff));
    if (shuffled) {
      std::shuffle(runner.order, runner.order + threads, random);
      for (int& rank : runner.rank) rank = static_cast<int>(random() >> 1);
    }
    release(&pool.fusion[++runner.block & 1]);
    run_block();
    acquire(&pool.fusion[~runner.block & 1]);
  }
}

}  // namespace host_cuda
