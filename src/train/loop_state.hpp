// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "core/errors.hpp"
#include "core/stop.hpp"
#include "train/timeline.hpp"

namespace convoy {

/// Where the training loop is and why it ends. All ranks hold the same, but for `save_asked`.
struct LoopState {
  Position position;  ///< steps done
  Position working;   ///< where the running step began; between two steps, the one that is done
  Index last_step = 0;
  std::string limit;  ///< the option that ends the loop before the run's end: `--max-steps 9`; empty: none does

  StopReason stop = StopReason::none;
  Index superseded_by = 0;  ///< a newer attempt; 0: none
  Exit trouble = Exit::ok;  ///< why checkpoints can't be saved
  bool ends_early = false;  ///< --target-accuracy is reached, or --patience is over: the run is complete
  bool save_asked = false;  ///< this rank has voted for a save that is not done yet
  bool save_due = false;    ///< agreed

  bool stopped() const { return stop != StopReason::none || superseded_by > 0 || trouble != Exit::ok; }
  bool ends() const { return stopped() || ends_early || position.step >= last_step; }
  bool epoch_ended() const { return position.epoch > working.epoch; }

  /// A step of `images` images is done.
  void advance(Index images, const Timeline& timeline) {
    ++position.step;
    ++position.step_in_epoch;
    position.images += images;
    if (position.step_in_epoch < timeline.steps(position.epoch)) return;
    ++position.epoch;
    position.step_in_epoch = 0;
  }
};

}  // namespace convoy
