// SPDX-License-Identifier: Apache-2.0
#include "train/run_report.hpp"

#include <algorithm>

#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/wall_clock.hpp"
#include "train/run_folder.hpp"
#include "train/training_job.hpp"

namespace convoy {

void RunReport::step_begins(const LoopState& state) {
  tell(RunStage::train, state);
  progress().at(state.position.epoch + 1, state.position.step + 1);
  progress().enter(Activity::compute);
}

void RunReport::tell(RunStage stage, const LoopState& state) const {
  if (job_.state_file == nullptr) return;
  job_.state_file->update([&](RunState& run) {
    run.stage = stage;
    run.epoch = std::min(state.position.epoch + 1, run.epochs);
    run.step = state.position.step;
    if (state.stop != StopReason::none && run.stop.empty()) {  // another rank was asked
      run.stop = name_of(state.stop);
      run.stop_time = wall_seconds();
    }
  });
}

void RunReport::tell_limit(const LoopState& state) const {
  const Position& at = state.position;
  log::info("stopped by {} at epoch {}, step {} of {}; {}", state.limit,
            at.step_in_epoch == 0 ? at.epoch : at.epoch + 1, at.step, job_.shape.total_steps,
            how_to_continue(job_.config, job_.shape.ranks));
  if (job_.state_file == nullptr) return;
  job_.state_file->update([&](RunState& run) { run.stop = state.limit; });
}

}  // namespace convoy
