// SPDX-License-Identifier: Apache-2.0
#include "train/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace convoy {
namespace {

/// Host and cores of this process, as one word that equals another rank's where they share them.
std::string place(const Communicator& communicator, int& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  cores = std::max(1, CPU_COUNT(&set));
  std::string text = communicator.host() + ':';
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) text += std::to_string(i) + ',';
  }
  return text;
}

}  // namespace

int threads_per_rank(Communicator& communicator) {
  int cores = 1;
  if (const char* wish = std::getenv("OMP_NUM_THREADS"); wish != nullptr && std::atoi(wish) > 0) {
    // Every rank takes part in what follows, with its own number.
    std::array<double, 1> threads{static_cast<double>(std::atoi(wish))};
    static_cast<void>(communicator.all_gather({}, "cores of the ranks"));
    communicator.minimum(threads, "threads a rank");
    return static_cast<int>(threads[0]);
  }
  const std::string mine = place(communicator, cores);
  const auto all = communicator.all_gather(mine, "cores of the ranks");
  const auto sharing = std::count(all.begin(), all.end(), mine);
  std::array<double, 1> threads{static_cast<double>(std::max<Index>(1, cores / std::max<Index>(sharing, 1)))};
  communicator.minimum(threads, "threads a rank");
  return static_cast<int>(threads[0]);
}

}  // namespace convoy
