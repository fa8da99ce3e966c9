// SPDX-License-Identifier: Apache-2.0
#include "train/periodic_save.hpp"

#include "core/clock.hpp"
#include "train/training_job.hpp"

namespace convoy {

void PeriodicSave::step_done(LoopState& state) {
  const CheckpointConfig& config = job_.config.checkpoint;
  if (!config.save || state.stopped()) return;
  const Position& at = state.position;
  const bool steps = config.save_every_steps > 0 && at.step % config.save_every_steps == 0;
  const bool epochs = job_.shape.timeline.is_due(config.save_every, at.step);
  if (!steps && !epochs && !state.save_due) return;
  state.save_asked = state.save_due = false;
  const auto begin = real_clock().now();
  const bool whole_epochs = at.step_in_epoch == 0 && epochs;
  job_.checkpointing.save(whole_epochs ? fmt::format("epoch-{:04d}", at.epoch) : fmt::format("step-{:08d}", at.step),
                          at);
  job_.estimate.save_done(seconds_since(begin));
}

}  // namespace convoy
