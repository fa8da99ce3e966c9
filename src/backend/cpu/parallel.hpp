// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <omp.h>

#include "backend/cpu/tensor_layout.hpp"
#include "core/types.hpp"

namespace convoy::cpu {

/// Elements below which a parallel region costs more than it saves.
constexpr Index parallel_elements = 1 << 14;

/// Calls visit(thread, begin, end) in each of up to `threads` threads, with its part of [0, units). What a unit
/// computes must not depend on the parts.
template <class Visit>
void split_among(int threads, Index units, const Visit& visit) {
  if (threads == 1) {
    visit(0, Index{0}, units);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int t = omp_get_thread_num(), n = omp_get_num_threads();
    visit(t, units * t / n, units * (t + 1) / n);
  }
}

/// Calls visit(begin, end) for pieces of [0, units): one piece a thread, or all at once where threads are at work
/// already or the work is small. What a unit computes must not depend on the pieces.
template <class Visit>
void split_units(Index units, Index elements_per_unit, const Visit& visit) {
  const int threads = omp_get_max_threads();
  if (threads == 1 || units == 1 || omp_in_parallel() || units * elements_per_unit < parallel_elements) {
    visit(Index{0}, units);
    return;
  }
  split_among(threads, units, [&](int, Index begin, Index end) { visit(begin, end); });
}

/// The `share` below of one thread.
inline constexpr auto take_all = [](Index units, const auto& visit) { visit(Index{0}, units); };

/// Calls run(share) in each of `threads` threads. share(units, visit) calls visit(begin, end) with the thread's part of
/// [0, units), and returns when all threads have done theirs.
template <class Run>
void run_shared(int threads, const Run& run) {
  if (threads == 1) {
    run(take_all);
    return;
  }
#pragma omp parallel num_threads(threads)
  run([](Index units, const auto& visit) {
    const Index t = omp_get_thread_num(), n = omp_get_num_threads();
    visit(units * t / n, units * (t + 1) / n);
#pragma omp barrier
  });
}

/// Runs a vector loop over all units of some images.
template <class Args, class Kernel>
void run_units(const Kernel& kernel, const Args& args, const TensorLayout& layout, Index images) {
  split_units(units_per_image(layout) * images, layout.pixels() * lanes * unit_blocks(layout),
              [&](Index begin, Index end) { kernel(args, begin, end); });
}

}  // namespace convoy::cpu
