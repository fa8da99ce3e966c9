// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/counters.hpp"

#include <utility>

namespace convoy::cuda {

CountersOnDevice::CountersOnDevice(Queue& queue)
    : queue_(queue),
      device_(reinterpret_cast<Counters*>(queue.allocate(sizeof(Counters), "counters"))),
      host_(reinterpret_cast<Counters*>(queue.allocate_host((slots + 1) * sizeof(Counters), "counters"))) {
  host_[slots] = {};
  start_anew();
}

void CountersOnDevice::start_anew() { queue_.to_device(device_, &host_[slots], sizeof(Counters)); }

Event CountersOnDevice::snapshot() {
  if (made_ - taken_ == slots) {
    queue_.wait(copied_[taken_ % slots]);
    sum_.add(host_[taken_++ % slots]);
  }
  queue_.to_host(&host_[made_ % slots], device_, sizeof(Counters), Stream::compute);
  start_anew();
  return copied_[made_++ % slots] = queue_.record();
}

Counters CountersOnDevice::take() {
  if (made_ == taken_) start_anew();
  while (taken_ < made_) {
    queue_.wait(copied_[taken_ % slots]);
    sum_.add(host_[taken_++ % slots]);
  }
  return std::exchange(sum_, {});
}

}  // namespace convoy::cuda
