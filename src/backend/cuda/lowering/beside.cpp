// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/beside.hpp"

#include <algorithm>

namespace convoy::cuda {
namespace {

bool may_leave(const ExecutionPlan& execution, const Step& step) {
  return step.operation && step.graph.pass == Pass::weight_gradient && execution.bytes_moved(step) <= most_bytes_beside;
}

bool collide(const Step& a, const Step& b) {
  return std::any_of(a.accesses.begin(), a.accesses.end(), [&](const BufferAccess& one) {
    return std::any_of(b.accesses.begin(), b.accesses.end(), [&](const BufferAccess& other) {
      return one.buffer == other.buffer && (one.access == Access::write || other.access == Access::write);
    });
  });
}

/// use(step, begin, last) for each step beside the row, with the first step of the row that it may run beside: the
/// steps before have ended when it begins. `last`: of its stage, which waits for it.
template <class Use>
void for_each_beside(const ExecutionPlan& execution, const Use& use) {
  std::size_t begin = 0;
  for (const lowering::Stage& stage : execution.stages) {
    for (std::size_t k = begin; k < stage.end; ++k) {
      if (!execution.steps[k].beside) continue;
      if (execution.steps[k].waits) begin = k;
      use(k, begin, stage.end - 1);
    }
    begin = stage.end;
  }
}

/// A step beside the row waits itself only if it is the first of its stage, or if a row step since the last wait writes
/// what it reads or touches what it writes.
void choose_waits(ExecutionPlan& execution, std::size_t begin, std::size_t end) {
  bool first = true;
  for (std::size_t k = begin; k < end; ++k) {
    Step& step = execution.steps[k];
    if (!step.beside) continue;
    const auto collides = [&](const Step& other) { return !other.beside && collide(step, other); };
    const auto at = [&](std::size_t number) { return execution.steps.begin() + static_cast<std::ptrdiff_t>(number); };
    step.waits = first || std::any_of(at(begin), at(k), collides);
    if (step.waits) begin = k;
    first = false;
  }
}

}  // namespace

void choose_beside(ExecutionPlan& execution) {
  std::size_t begin = 0;
  for (const lowering::Stage& stage : execution.stages) {
    bool followed = false;  // else the last step of the stage would wait for it at once
    for (std::size_t k = stage.end; k-- > begin;) {
      Step& step = execution.steps[k];
      const auto at = [&](std::size_t number) { return execution.steps.begin() + static_cast<std::ptrdiff_t>(number); };
      // A block that runs again may write what the step reads. The last step of the stage waits.
      const auto disturbs = [&](const Step& other) { return !other.beside && collide(step, other); };
      const bool may =
          may_leave(execution, step) && (k + 1 >= stage.end || std::none_of(at(k + 1), at(stage.end - 1), disturbs));
      step.beside = may && followed;
      followed = followed || (!may && k + 1 < stage.end);
    }
    choose_waits(execution, begin, stage.end);
    begin = stage.end;
  }
}

void extend_lifetimes(const ExecutionPlan& execution, std::vector<lowering::Lifetime>& lifetimes) {
  for_each_beside(execution, [&](std::size_t k, std::size_t begin, std::size_t last) {
    for (const BufferAccess& access : execution.steps[k].accesses) {
      lowering::Lifetime& lifetime = lifetimes[index_of(access.buffer)];
      lifetime.first = std::min(lifetime.first, static_cast<int>(begin));
      lifetime.last = std::max(lifetime.last, static_cast<int>(last));
    }
  });
}

}  // namespace convoy::cuda
