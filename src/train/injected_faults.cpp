// SPDX-License-Identifier: Apache-2.0
#include "train/injected_faults.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "core/text.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// In device memory: flips a bit of the mantissa, which does not show in the loss. It takes the largest of some floats,
/// since a 0 would stay so small that nothing changes.
void flip_bit(Device& device, Collectives& sums, float* values, Index count) {
  constexpr std::uint32_t bit = 1U << 20;
  std::vector<float> held(static_cast<std::size_t>(std::min<Index>(count, 256)));
  sums.await(device.download(held.data(), values, static_cast<Index>(held.size()), device.record()),
             "a value to be flipped");
  const auto largest =
      std::max_element(held.begin(), held.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  float flipped = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*largest) ^ bit);
  sums.await(device.upload(values + (largest - held.begin()), &flipped, 1), "a value that was flipped");
}

}  // namespace

/// Flips a bit of the last sum that is waited for, once it is asked to.
class FlippedSums final : public Collectives {
 public:
  FlippedSums(std::unique_ptr<Collectives> sums, Device& device) : sums_(std::move(sums)), device_(device) {}

  void flip_next() { due_ = true; }
  Ticket submit(const Reduction& reduction) override {
    if (reduction.count > 0) last_ = {reduction.out, static_cast<std::size_t>(reduction.count)};
    return sums_->submit(reduction);
  }
  bool capturable() const override { return false; }
  void poll() override { sums_->poll(); }
  void finish(Ticket ticket) override {
    sums_->finish(ticket);
    if (!last_.empty() && std::exchange(due_, false)) flip_bit(device_, *sums_, last_.data(), std::ssize(last_));
  }
  Event read(Ticket ticket, float* host, const float* from, Index n) override {
    return sums_->read(ticket, host, from, n);
  }
  void await(Event event, const char* what) override { sums_->await(event, what); }
  void gather(std::span<const std::byte> own, std::span<std::byte> all, std::span<const int> bytes,
              const char* what) override {
    sums_->gather(own, all, bytes, what);
  }
  void end() override { sums_->end(); }
  double take_wait_seconds() override { return sums_->take_wait_seconds(); }
  std::optional<Index> sent_bytes() const override { return sums_->sent_bytes(); }

 private:
  std::unique_ptr<Collectives> sums_;
  Device& device_;
  std::span<float> last_;
  bool due_ = false;
};

std::unique_ptr<Collectives> with_faults(std::unique_ptr<Collectives> sums, const TrainConfig& config, Device& device) {
  if (config.fault_kind != "flip-sum") return sums;
  return std::make_unique<FlippedSums>(std::move(sums), device);
}

InjectedFaults::InjectedFaults(TrainingJob& job) : job_(job), sums_(dynamic_cast<FlippedSums*>(job.collectives.get())) {
  if (job.shape.rank == 0 && !job.config.fault_kind.empty() && job.config.fault_rank >= job.shape.ranks)
    log::warn("--inject-fault {}@{}@{} has no effect: the job has {}", job.config.fault_kind, job.config.fault_rank,
              job.config.fault_step, counted(job.shape.ranks, "rank"));
}

bool InjectedFaults::is(const char* kind, Index step) const {
  const TrainConfig& config = job_.config;
  if (config.fault_kind != kind || config.fault_rank != job_.shape.rank) return false;
  return config.fault_kind.starts_with("slow") ? step >= config.fault_step : step == config.fault_step;
}

void InjectedFaults::step_begins(const LoopState& state) {
  if (is("throw", state.position.step)) fail(Exit::internal, "injected fault (--inject-fault)");
  if (is("flip-sum", state.position.step)) sums_->flip_next();
  if (is("flip-memory", state.position.step))
    flip(job_.sync->sets().front().block, job_.engine->layout().trained.count);
  if (is("stall", state.position.step)) std::this_thread::sleep_for(std::chrono::hours(24));
}

void InjectedFaults::flip(float* values, Index count) const {
  flip_bit(job_.engine->backend(), *job_.collectives, values, count);
}

bool InjectedFaults::watches_stages(const LoopState& state) const {
  return is("flip-convolution", state.position.step);
}

void InjectedFaults::stage_done(const LoopState& state, const ReplicaBatch& batch, std::size_t stage) {
  const Range& range = job_.engine->stages()[stage].range;
  if (!is("flip-convolution", state.position.step) || batch.replica != job_.shape.run.first || range.count == 0) return;
  flip(job_.engine->gradients() + range.begin, range.count);
}

void InjectedFaults::batch_ready(const LoopState& state, ReplicaBatch& batch) {
  if (is("nan", state.position.step)) batch.input.scale = std::numeric_limits<float>::quiet_NaN();
  // A gradient that is wrong by far, of one replica on any number of ranks.
  if (is("spike", state.position.step) && batch.replica == job_.shape.run.first) batch.input.scale *= 1000;
  if (!is("slow-compute", state.position.step)) return;
  const StepTimer::Scope timed(job_.timer, StepPart::launches);
  std::this_thread::sleep_for(std::chrono::duration<double>(job_.config.fault_seconds));
}

}  // namespace convoy
