// SPDX-License-Identifier: Apache-2.0
#include "train/injected_faults.hpp"

#include <chrono>
#include <limits>
#include <thread>

#include "train/training_job.hpp"

namespace convoy {

bool InjectedFaults::is(const char* kind, Index step) const {
  const TrainConfig& config = job_.config;
  if (config.fault_kind != kind || config.fault_rank != job_.shape.rank) return false;
  return config.fault_kind.starts_with("slow") ? step >= config.fault_step : step == config.fault_step;
}

void InjectedFaults::step_begins(const LoopState& state) {
  if (is("throw", state.position.step)) fail(Exit::internal, "injected fault (--inject-fault)");
  if (is("stall", state.position.step)) std::this_thread::sleep_for(std::chrono::hours(24));
}

void InjectedFaults::batch_ready(const LoopState& state, Batch& batch) {
  if (is("nan", state.position.step)) batch.scale = std::numeric_limits<float>::quiet_NaN();
  if (!is("slow-compute", state.position.step)) return;
  const StepTimer::Scope timed(job_.timer, StepPart::launches);
  std::this_thread::sleep_for(std::chrono::duration<double>(job_.config.fault_seconds));
}

}  // namespace convoy
