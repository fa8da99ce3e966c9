// SPDX-License-Identifier: Apache-2.0
// A device with two queues in host memory. Queued work runs only when an event that needs it is asked for, and then
// nothing else (lazy); or that of the second queue as soon as it can (ahead); or all (eager). A wait that is missing
// gives a wrong result in one of the first two.
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/device.hpp"
#include "core/types.hpp"

namespace convoy {

enum class Progress { lazy, ahead, eager };

/// Pieces of work in order. One that returns false is not done, and is asked again.
class WorkQueue {
 public:
  using Work = std::function<bool()>;
  std::uint64_t push(Work work) {
    work_.push_back(std::move(work));
    return first_ + work_.size();
  }
  std::uint64_t end() const { return first_ + work_.size(); }
  bool run_to(std::uint64_t end) {
    while (first_ < end) {
      if (!work_.front()()) return false;
      work_.pop_front();
      ++first_;
    }
    return true;
  }

 private:
  std::deque<Work> work_;
  std::uint64_t first_ = 0;
};

class QueueDevice final : public Device {
 public:
  explicit QueueDevice(Progress progress) : progress_(progress), communication_(*this) {}

  /// follow() calls of both queues since the last reset, and the number of the one that is forgotten; -1: none.
  int follows = 0, forgotten_follow = -1;
  /// What CommunicationQueue::capturing says.
  bool capturing = false;

  float* allocate(Index floats) override {
    const auto count = static_cast<std::size_t>(align_floats(floats)) + 16;
    blocks_.emplace_back(std::make_unique<float[]>(count));
    void* begin = blocks_.back().get();
    std::size_t space = count * sizeof(float);
    return static_cast<float*>(std::align(64, count * sizeof(float) - 64, begin, space));
  }
  float* allocate_host(Index floats) override { return allocate(floats); }
  CommunicationQueue* communication() override { return &communication_; }
  std::string identity() const override { return "queue device"; }
  bool host_reads() const override { return false; }
  Event record() override { return record(compute_); }
  bool done(Event event) override {
    const Place place = events_.at(event.id - 1);
    return place.queue->run_to(place.end);
  }
  void follow(Event event) override { follow(compute_, event); }
  Event download(float* host, const float* from, Index n, Event after) override {
    follow(compute_, after);
    move(compute_, host, from, n);
    return record();
  }
  Event upload(float* to, const float* host, Index n) override {
    move(compute_, to, host, n);
    return record();
  }
  void copy(float* to, const float* from, Index n, float factor) override {
    each(compute_, n, [=](Index i) { to[i] = factor * from[i]; });
  }
  void add(float* to, const float* from, Index n) override {
    each(compute_, n, [=](Index i) { to[i] += from[i]; });
  }
  void fill(float* to, Index n, float value) override {
    each(compute_, n, [=](Index i) { to[i] = value; });
  }
  void round(float* values, Index n, Wire wire) override { round(compute_, values, n, wire); }

  /// Of the stand-in for NCCL; `stream` is CommunicationQueue::stream().
  static void enqueue(void* stream, WorkQueue::Work work) {
    auto& queue = *static_cast<Second*>(stream);
    queue.device_.push(queue.queue_, std::move(work));
  }
  /// The object goes with the graph, where work is being captured. Graphs are not modelled beyond that.
  static bool keep_with_graph(void* stream, std::shared_ptr<void> object) {
    QueueDevice& device = static_cast<Second*>(stream)->device_;
    if (device.capturing) device.graphs_.push_back(std::move(object));
    return device.capturing;
  }
  /// Any work of a test's own.
  void compute(std::function<void()> work) {
    push(compute_, [work = std::move(work)] { return work(), true; });
  }
  /// Holds the first queue until `ready` says true.
  void compute_when(std::function<bool()> ready) { push(compute_, std::move(ready)); }

 private:
  struct Place {
    WorkQueue* queue;
    std::uint64_t end;
  };

  class Second final : public CommunicationQueue {
   public:
    explicit Second(QueueDevice& device) : device_(device) {}
    void* stream() override { return this; }
    bool capturing() const override { return device_.capturing; }
    void forget_graphs() noexcept override { device_.graphs_.clear(); }
    void follow(Event event) override { device_.follow(queue_, event); }
    Event record() override { return device_.record(queue_); }
    void download(float* host, const float* from, Index n) override { device_.move(queue_, host, from, n); }
    void upload(float* to, const float* host, Index n) override { device_.move(queue_, to, host, n); }
    void copy(float* to, const float* from, Index n) override { device_.move(queue_, to, from, n); }
    void add(float* to, const float* from, Index n) override {
      device_.each(queue_, n, [=](Index i) { to[i] += from[i]; });
    }
    void round(float* values, Index n, Wire wire) override { device_.round(queue_, values, n, wire); }
    void narrow(std::uint16_t* to, const float* from, Index n, Wire wire) override {
      device_.each(queue_, n, [=](Index i) { to[i] = narrowed(from[i], wire); });
    }
    void widen(float* to, const std::uint16_t* from, Index n, Wire wire) override {
      device_.each(queue_, n, [=](Index i) { to[i] = widened(from[i], wire); });
    }

   private:
    friend class QueueDevice;
    QueueDevice& device_;
    WorkQueue queue_;
  };

  void push(WorkQueue& queue, WorkQueue::Work work) {
    queue.push(std::move(work));
    if (progress_ == Progress::lazy) return;
    if (progress_ == Progress::eager) compute_.run_to(compute_.end());
    communication_.queue_.run_to(communication_.queue_.end());
  }
  Event record(WorkQueue& queue) {
    events_.push_back({&queue, queue.end()});
    return {events_.size()};
  }
  void follow(WorkQueue& queue, Event event) {
    if (event.id == 0 || follows++ == forgotten_follow) return;
    push(queue, [this, event] { return done(event); });
  }
  void move(WorkQueue& queue, float* to, const float* from, Index n) {
    each(queue, n, [=](Index i) { to[i] = from[i]; });
  }
  void round(WorkQueue& queue, float* values, Index n, Wire wire) {
    each(queue, n, [=](Index i) { values[i] = widened(narrowed(values[i], wire), wire); });
  }
  template <class Body>
  void each(WorkQueue& queue, Index n, Body body) {
    push(queue, [=] {
      for (Index i = 0; i < n; ++i) body(i);
      return true;
    });
  }

  Progress progress_;
  std::vector<std::unique_ptr<float[]>> blocks_;
  std::vector<Place> events_;
  std::vector<std::shared_ptr<void>> graphs_;
  WorkQueue compute_;
  Second communication_;
};

}  // namespace convoy
