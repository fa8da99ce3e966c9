// SPDX-License-Identifier: Apache-2.0
#include "train/stop_vote.hpp"

#include <algorithm>

#include "train/training_job.hpp"

namespace convoy {

StepVote StopVote::own_vote(LoopState& state) const {
  StepVote vote{.stop = stop_reason(), .finished_parts = job_.checkpointing.finished_parts()};
  if (job_.state_file != nullptr) vote.superseded_by = job_.state_file->superseded_by();
  // One vote until the save is done, since it is agreed a step later.
  if (!state.save_asked && job_.checkpointing.minutes_are_up()) vote.save = state.save_asked = true;
  return vote;
}

bool StopVote::agree(LoopState& state) {
  const StepVote agreed = agree_later(job_.communicator, own_vote(state));
  state.save_due = state.save_due || agreed.save;
  state.stop = std::max(state.stop, agreed.stop);
  state.superseded_by = std::max(state.superseded_by, agreed.superseded_by);
  Checkpointing& checkpointing = job_.checkpointing;
  checkpointing.advance(agreed.finished_parts);
  state.trouble = checkpointing.trouble();
  if (state.trouble != Exit::ok && state.trouble != Exit::superseded) {
    checkpointing.finish();  // a save that is under way may get through: then the trouble is over
    state.trouble = checkpointing.trouble();
  }
  return state.stopped();
}

void StopVote::step_done(LoopState& state) {
  const StepTimer::Scope timed(job_.timer, StepPart::votes);
  agree(state);
}

}  // namespace convoy
