// SPDX-License-Identifier: Apache-2.0
#include "train/foretell.hpp"

#include "core/log.hpp"
#include "core/wall_clock.hpp"

namespace convoy {

Foreteller::Foreteller(const ForecastSpec& spec, const Job& job)
    : spec_(spec), job_(job), forecast_(spec), start_up_(wall_seconds() - job.began) {
  // The first whole epoch of this job, and a step for what follows its end.
  const Index epoch = spec.steps_per_epoch;
  tell_again_at_ = (spec.first_step + epoch - 1) / epoch * epoch + epoch + 1;
}

void Foreteller::step_done(double seconds, Index step) {
  forecast_.add_step(seconds);
  const bool first = told_ == 0 && forecast_.is_ready() && step < spec_.last_step;
  const bool again = told_ == 1 && step == tell_again_at_;
  if (first || again) tell(step);
}

void Foreteller::validation_done(double seconds, Index images) {
  const double whole = spec_.val_images, part = static_cast<double>(images);
  forecast_.add_validation(part > 0 && part < whole ? seconds * whole / part : seconds);
}

void Foreteller::tell(Index step) {
  ++told_;
  const Estimate estimate = forecast_.estimate(step);
  log::info("{}", describe(estimate, spec_));
  log::info("{}", describe(JobTime{.left = estimate.left,
                                   .start_up = start_up_,
                                   .limit = job_.end_time > 0 ? job_.end_time - job_.began : 0,
                                   .margin = job_.margin,
                                   .elapsed = wall_seconds() - job_.began,
                                   .epoch = estimate.epoch}));
}

}  // namespace convoy
