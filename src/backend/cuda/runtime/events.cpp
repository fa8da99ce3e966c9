// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/events.hpp"

#include <algorithm>
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
  constexpr std::size_t pairs_of_streams = 20;  // four streams, each known to the host and to the others
  known_.reserve(pairs_of_streams);
  known_captured_.reserve(pairs_of_streams);
  for (Slot& slot : slots_) slot.event = make_event();
}

EventRing::~EventRing() {
  for (const Slot& slot : slots_) cudaEventDestroy(slot.event);
  for (const Slot& slot : captured_) cudaEventDestroy(slot.event);
}

std::uint64_t& EventRing::newest(std::vector<Known>& known, cudaStream_t by, cudaStream_t of) {
  const auto at = std::find_if(known.begin(), known.end(), [&](const Known& k) { return k.by == by && k.of == of; });
  return at != known.end() ? at->id : known.emplace_back(Known{by, of, 0}).id;
}

bool EventRing::ask(const Slot& slot) {
  std::uint64_t& passed = newest(known_, nullptr, slot.stream);
  if (slot.id <= passed) return true;
  const cudaError_t state = cudaEventQuery(slot.event);
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // it counts as one
    return false;
  }
  check(state, "work on the GPU");
  passed = slot.id;
  return true;
}

Event EventRing::record(cudaStream_t stream) {
  Slot& next = slot(last_ + 1);
  while (!ask(next)) std::this_thread::yield();
  check(cudaEventRecord(next.event, stream), "recording an event");
  next.id = ++last_;
  next.stream = stream;
  return {next.id};
}

Event EventRing::record_captured(cudaStream_t stream) {
  if (captured_used_ == captured_.size()) captured_.push_back({.event = make_event(), .id = captured_used_ + 1});
  Slot& next = captured_[captured_used_];
  check(cudaEventRecord(next.event, stream), "recording an event");
  next.stream = stream;
  return {captured_bit | captured_used_++};
}

void EventRing::forget_captured() {
  captured_used_ = 0;
  known_captured_.clear();
}

bool EventRing::done(Event event) {
  if (event.id == 0) return true;
  require((event.id & captured_bit) == 0, "the host asks for an event of a captured graph");
  const Slot& at = slot(event.id);
  return at.id != event.id || ask(at);
}

void EventRing::wait(cudaStream_t stream, const Slot& slot, std::vector<Known>& known) {
  if (slot.stream == stream) return;
  std::uint64_t& waited = newest(known, stream, slot.stream);
  if (slot.id <= waited) return;
  check(cudaStreamWaitEvent(stream, slot.event, 0), "waiting for an event");
  waited = slot.id;
}

void EventRing::follow(cudaStream_t stream, Event event) {
  if (event.id == 0) return;
  if ((event.id & captured_bit) != 0) return wait(stream, captured_.at(event.id & ~captured_bit), known_captured_);
  const Slot& at = slot(event.id);
  if (at.id == event.id && at.id > newest(known_, nullptr, at.stream)) wait(stream, at, known_);
}

}  // namespace convoy::cuda
