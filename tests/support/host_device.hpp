// SPDX-License-Identifier: Apache-2.0
// A device in host memory for tests of comm and sync. As a far device the host may not read its memory, copies between
// the two are done only at their event, and every event needs a number of polls before it is done.
#pragma once
#include <cstring>
#include <memory>
#include <vector>

#include "core/device.hpp"

namespace convoy {

struct HostDeviceSpec {
  bool far = false;
  int polls = 0;  ///< far: of an event before it is done
};

/// Interface is Device or a class derived from it.
template <class Interface>
class HostMemory : public Interface {
 public:
  explicit HostMemory(const HostDeviceSpec& spec = {}) : spec_(spec) {}

  float* allocate(Index floats) override {
    const auto count = static_cast<std::size_t>(align_floats(floats)) + 16;
    blocks_.emplace_back(std::make_unique<float[]>(count));
    void* begin = blocks_.back().get();
    std::size_t space = count * sizeof(float);
    return static_cast<float*>(std::align(64, count * sizeof(float) - 64, begin, space));
  }
  bool host_reads() const override { return !spec_.far; }
  Event record() override { return spec_.far ? push({}) : Event{}; }
  bool done(Event event) override {
    if (event.id <= finished_) return true;
    if (++at(finished_ + 1).polls > spec_.polls) finish_oldest();
    return event.id <= finished_;
  }
  void follow(Event) override {}
  Event download(float* host, const float* from, Index n, Event) override { return move(host, from, n); }
  /// Launches see the new contents at once, the host may change its memory only after the event: it is overwritten
  /// then.
  Event upload(float* to, const float* host, Index n) override {
    std::memcpy(to, host, static_cast<std::size_t>(n) * sizeof(float));
    return spec_.far ? push({}) : Event{};
  }
  void copy(float* to, const float* from, Index n, float factor) override {
    for (Index i = 0; i < n; ++i) to[i] = factor * from[i];
  }
  void add(float* to, const float* from, Index n) override {
    for (Index i = 0; i < n; ++i) to[i] += from[i];
  }
  void fill(float* to, Index n, float value) override {
    for (Index i = 0; i < n; ++i) to[i] = value;
  }
  void round(float* values, Index n, Wire wire) override { round_to(values, n, wire); }

 private:
  struct Entry {
    float* to = nullptr;
    const float* from = nullptr;
    Index count = 0;
    int polls = 0;
  };
  Event move(float* to, const float* from, Index n) {
    if (spec_.far) return push({to, from, n});
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
    return {};
  }
  Entry& at(std::uint64_t event) { return queue_[event % queue_.size()]; }
  void finish_oldest() {
    const Entry& oldest = at(++finished_);
    if (oldest.to) std::memcpy(oldest.to, oldest.from, static_cast<std::size_t>(oldest.count) * sizeof(float));
  }
  Event push(const Entry& entry) {
    if (pushed_ - finished_ == queue_.size()) finish_oldest();
    at(++pushed_) = entry;
    return {pushed_};
  }

  HostDeviceSpec spec_;
  std::vector<std::unique_ptr<float[]>> blocks_;
  std::vector<Entry> queue_ = std::vector<Entry>(1024);  ///< ring: those up to finished_ are done
  std::uint64_t finished_ = 0, pushed_ = 0;
};

using HostDevice = HostMemory<Device>;

}  // namespace convoy
