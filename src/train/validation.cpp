// SPDX-License-Identifier: Apache-2.0
#include "train/validation.hpp"

#include <algorithm>
#include <cmath>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "metrics/console.hpp"
#include "train/training_job.hpp"

namespace convoy {

Evaluator* Validation::evaluator(const LoopState& state) const {
  return job_.data->evaluator(state.position.data_epoch());
}

bool Validation::is_due(const LoopState& state) const {
  return job_.shape.timeline.is_due(job_.config.val_interval, state.position.step);
}

bool Validation::is_missing(const LoopState& state) const {
  return evaluator(state) != nullptr && job_.checkpointing.validated_step != state.position.step;
}

void Validation::step_done(LoopState& state) {
  if (!state.stopped() && is_due(state)) run(state);
}

bool Validation::counts(const LoopState& state) const {
  return is_due(state) || state.position.step >= job_.shape.total_steps;
}

void Validation::run(LoopState& state) {
  if (evaluator(state) == nullptr) return;
  job_.training_log.take_counters();  // in the middle of an interval they would be counted with the evaluation's
  job_.report.tell(RunStage::evaluate, state);
  const auto begin = real_clock().now();
  const auto result = evaluator(state)->run(job_.average.validated(), [&] { return job_.vote.agree(state); });
  if (!result) return;  // done by the job that goes on
  const Position& at = state.position;
  ValidationRecord record = *result;
  record.epoch = at.step_in_epoch == 0 ? at.epoch : at.epoch + 1;
  record.step = at.step;
  record.images_seen = at.images;
  job_.estimate.validation_done(seconds_since(begin), record.images);
  if (job_.metrics != nullptr) job_.metrics->validation(record);
  Checkpointing& checkpointing = job_.checkpointing;
  checkpointing.validated_step = at.step;
  const double top1 = record.counters[Counter::top1];
  // Classes of logits that are no numbers are chance, and may be better than the first validation.
  const bool finite = std::isfinite(record.counters[Counter::loss]);
  const bool counted_in = counts(state), best = counted_in && finite && top1 > checkpointing.best_top1;
  if (counted_in && finite) checkpointing.best_top1 = std::max(checkpointing.best_top1, top1);
  log::info("epoch {} validation{}: top1 {:.2f} % ({}/{}), {}loss {:.4f}, {}, {:.1f} s{}", record.epoch,
            job_.average.of_it(), top1, record.count(Counter::top1), record.images,
            record.k > 1 ? fmt::format("top{} {:.2f} %, ", record.k, record.counters[Counter::topk]) : std::string(),
            record.counters[Counter::loss],
            counted_in ? (checkpointing.best_top1 < 0 ? "none is the best yet"
                                                      : fmt::format("best {:.2f} %", checkpointing.best_top1))
                       : "not due by --val-interval, so best.h5, --patience and plateau leave it out",
            record.seconds, tell_part(record));
  if (!finite)
    log::warn(
        "the loss of this validation is not finite, so best.h5 stays as it is: the weights have diverged; lower --lr or lengthen --warmup-epochs");
  if (!counted_in) return;
  Index& since_best = checkpointing.validations_since_best;
  since_best = best ? 0 : since_best + 1;
  if (best && job_.config.checkpoint.save) checkpointing.save("best", at, Checkpointing::Content::model);
  const ScheduleSpec& schedule = job_.config.optimiser.schedule;
  if (schedule.decay == Decay::plateau) {
    Plateau& plateau = job_.optimiser.plateau;
    const Index before = plateau.cuts;
    plateau.see(best, schedule.patience);
    if (plateau.cuts > before) log::info("the learning rate is multiplied by {} from here on", schedule.factor);
  }
  if (const std::string why = why_run_ends(); !why.empty()) {
    state.ends_early = true;
    log::info("{}: the run ends", why);
  }
}

std::string Validation::why_run_ends() const {
  const Checkpointing& found = job_.checkpointing;
  const double target = job_.config.target_accuracy;
  if (target > 0 && found.best_top1 >= target)
    return fmt::format("target of {} % reached with {:.2f} % (--target-accuracy)", target, found.best_top1);
  const Index patience = job_.config.patience;
  if (patience > 0 && found.validations_since_best >= patience)
    return fmt::format("no new best in {} (--patience {})", counted(found.validations_since_best, "validation"),
                       patience);
  return {};
}

}  // namespace convoy
