// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/counters.hpp"

#include <algorithm>
#include <utility>

namespace convoy::cuda {

CountersOnDevice::CountersOnDevice(Queue& queue)
    : queue_(queue),
      device_(reinterpret_cast<DeviceCounters*>(queue.allocate(sizeof(DeviceCounters), "counters"))),
      host_(reinterpret_cast<DeviceCounters*>(queue.allocate_host((slots + 1) * sizeof(DeviceCounters), "counters"))) {
  host_[slots] = {};
  start_anew();
}

void CountersOnDevice::start_anew() { queue_.to_device(device_, &host_[slots], sizeof(DeviceCounters)); }

Event CountersOnDevice::snapshot() {
  if (made_ - taken_ == slots) {
    queue_.wait(copied_[taken_ % slots]);
    collect(host_[taken_++ % slots]);
  }
  queue_.to_host(&host_[made_ % slots], device_, sizeof(DeviceCounters), Stream::compute);
  start_anew();
  return copied_[made_++ % slots] = queue_.record();
}

Counters CountersOnDevice::take() {
  if (made_ == taken_) start_anew();
  while (taken_ < made_) {
    queue_.wait(copied_[taken_ % slots]);
    collect(host_[taken_++ % slots]);
  }
  return std::exchange(sum_, {});
}

void CountersOnDevice::collect(const DeviceCounters& counters) {
  sum_.loss += counters.loss;
  sum_.top1 += counters.top1;
  sum_.topk += counters.topk;
  sum_.samples += counters.samples;
  sum_.skipped += counters.skipped;
  if (counters.bad_replica < 0) return;
  sum_.bad_replica = sum_.bad_replica < 0 ? counters.bad_replica : std::min(sum_.bad_replica, counters.bad_replica);
}

}  // namespace convoy::cuda
