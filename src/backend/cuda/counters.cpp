// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/counters.hpp"

#include <algorithm>
#include <utility>

namespace convoy::cuda {

CountersOnDevice::CountersOnDevice(Queue& queue)
    : queue_(queue),
      tally_(reinterpret_cast<Tally*>(queue.allocate(sizeof(Tally), "counters"))),
      host_(reinterpret_cast<Tally*>(queue.allocate_host((slots + 1) * sizeof(Tally), "counters"))) {
  host_[slots] = {};
  start_anew();
}

void CountersOnDevice::start_anew() { queue_.to_device(tally_, &host_[slots], sizeof(Tally)); }

Event CountersOnDevice::snapshot() {
  if (made_ - taken_ == slots) {
    queue_.wait(copied_[taken_ % slots]);
    collect(host_[taken_++ % slots]);
  }
  queue_.to_host(&host_[made_ % slots], tally_, sizeof(Tally), Stream::compute);
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

void CountersOnDevice::collect(const Tally& tally) {
  sum_.loss += tally.loss;
  sum_.top1 += tally.top1;
  sum_.topk += tally.topk;
  sum_.samples += tally.samples;
  sum_.skipped += tally.skipped;
  if (tally.bad_replica < 0) return;
  sum_.bad_replica = sum_.bad_replica < 0 ? tally.bad_replica : std::min(sum_.bad_replica, tally.bad_replica);
}

}  // namespace convoy::cuda
