// SPDX-License-Identifier: Apache-2.0
#include "train/step_timer.hpp"

#include <algorithm>

#include "core/clock.hpp"
#include "core/progress.hpp"

namespace convoy {
namespace {

const char* name_of(StepPart part) {
  switch (part) {
    case StepPart::launches:
      return "forward, backward, update";
    case StepPart::averages:
      return "average of the replicas";
    case StepPart::device:
      return "wait for the device";
    case StepPart::votes:
      return "wait for the votes";
  }
  return "";
}

}  // namespace

void StepTimer::begin_step(Index step) {
  step_ = step;
  begin_ = real_clock().now();
  compute_ = comm_ = 0;
}

StepSeconds StepTimer::end_step(double data) {
  const Instant now = real_clock().now();
  if (trace().is_on())
    trace().add({.name = "step", .row = trace_row::main, .begin = begin_, .end = now, .number = step_});
  return {.step = seconds_between(begin_, now), .data = data, .compute = std::max(0.0, compute_), .comm = comm_};
}

double StepTimer::take_wait_seconds() {
  return collectives_.take_wait_seconds() + (group_ == nullptr ? 0 : group_->take_wait_seconds());
}

StepTimer::Scope::Scope(StepTimer& timer, StepPart part) : timer_(timer), part_(part), span_(name_of(part)) {
  if (part == StepPart::averages) progress().enter(Activity::communication);
  static_cast<void>(timer.take_wait_seconds());  // waits outside of any scope are nobody's
  begin_ = real_clock().now();
}

StepTimer::Scope::~Scope() {
  const double seconds = seconds_since(begin_), waited = timer_.take_wait_seconds();
  switch (part_) {
    case StepPart::launches:
    case StepPart::averages:
      timer_.compute_ += seconds - waited;
      timer_.comm_ += waited;
      break;
    case StepPart::device:
      timer_.compute_ += seconds;
      break;
    case StepPart::votes:
      timer_.comm_ += seconds;
      break;
  }
}

}  // namespace convoy
