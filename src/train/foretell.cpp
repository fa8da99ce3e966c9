// SPDX-License-Identifier: Apache-2.0
#include "train/foretell.hpp"

#include <algorithm>
#include <cmath>

#include "core/log.hpp"
#include "core/wall_clock.hpp"

namespace convoy {

Foreteller::Foreteller(const ForecastSpec& spec, const Job& job)
    : spec_(spec), job_(job), forecast_(spec), start_up_(wall_seconds() - job.began) {
  phase_ = spec.phase(std::max<Index>(spec.first_step - 1, 0));
  // The first whole epoch of this job, and a step for what follows its end.
  const auto epoch = static_cast<Index>(std::ceil(spec.timeline.epochs(spec.first_step)));
  tell_again_at_ = spec.timeline.first_step(epoch + 1) + 1;
}

void Foreteller::step_done(double seconds, Index step) {
  phase_ = spec_.phase(step - 1);
  forecast_.add_step(seconds, phase_);
  const bool first = !told_ && forecast_.is_ready() && step < spec_.last_step;
  const bool again = step == tell_again_at_;
  if (again) {
    const std::size_t next = phase_ + 1;
    tell_again_at_ =
        next < spec_.phases.size() ? spec_.timeline.first_step(spec_.phases[next].begin_epoch + 1) + 1 : -1;
  }
  if (first || (again && told_)) tell(step);
}

void Foreteller::validation_done(double seconds, Index images) {
  const double whole = spec_.phases[phase_].val_images, part = static_cast<double>(images);
  forecast_.add_validation(part > 0 && part < whole ? seconds * whole / part : seconds, phase_);
}

void Foreteller::tell(Index step) {
  told_ = true;
  const Estimate estimate = forecast_.estimate(step);
  log::info("{}", describe(estimate));
  log::info("{}", describe(JobTime{.left = estimate.left,
                                   .start_up = start_up_,
                                   .limit = job_.end_time > 0 ? job_.end_time - job_.began : 0,
                                   .margin = job_.margin,
                                   .elapsed = wall_seconds() - job_.began,
                                   .epoch = estimate.epoch}));
}

}  // namespace convoy
