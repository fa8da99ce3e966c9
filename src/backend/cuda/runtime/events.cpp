// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/events.hpp"

#include <thread>

#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// A step records a few dozen at most, and the host is at most a few steps ahead.
constexpr std::size_t ring_size = 512;

cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

}  // namespace

EventRing::EventRing() : slots_(ring_size) {
  for (Slot& slot : slots_) slot.event = make_event();
}

EventRing::~EventRing() {
  for (const Slot& slot : slots_) cudaEventDestroy(slot.event);
  for (cudaEvent_t event : captured_) cudaEventDestroy(event);
}

bool EventRing::ask(Slot& slot) {
  if (slot.passed) return true;
  const cudaError_t state = cudaEventQuery(slot.event);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // it counts as one
    return false;
  }
  check(state, "work on the GPU");
  return slot.passed = true;
}

Event EventRing::record(cudaStream_t stream) {
  Slot& next = slot(last_ + 1);
  while (!ask(next)) std::this_thread::yield();
  check(cudaEventRecord(next.event, stream), "recording an event");
  next.id = ++last_;
  next.passed = false;
  return {next.id};
}

Event EventRing::record_captured(cudaStream_t stream) {
  if (captured_used_ == captured_.size()) captured_.push_back(make_event());
  check(cudaEventRecord(captured_[captured_used_], stream), "recording an event");
  return {captured_bit | captured_used_++};
}

bool EventRing::done(Event event) {
  if (event.id == 0) return true;
  require((event.id & captured_bit) == 0, "the host asks for an event of a captured graph");
  Slot& at = slot(event.id);
  return at.id != event.id || ask(at);
}

void EventRing::follow(cudaStream_t stream, Event event) {
  if (event.id == 0) return;
  if ((event.id & captured_bit) != 0) {
    check(cudaStreamWaitEvent(stream, captured_.at(event.id & ~captured_bit), 0), "waiting for an event");
    return;
  }
  const Slot& at = slot(event.id);
  if (at.id == event.id && !at.passed) check(cudaStreamWaitEvent(stream, at.event, 0), "waiting for an event");
}

}  // namespace convoy::cuda
