// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "core/wall_clock.hpp"

namespace convoy {
namespace {

/// True where `every` epochs (fractions allowed) end at this step.
bool epochs_due(double every, Index step, const Timeline& timeline) {
  if (every <= 0 || step == 0) return false;
  const double now = timeline.epochs(step), before = timeline.epochs(step - 1);
  constexpr double slack = 1e-9;
  return std::floor(now / every + slack) > std::floor(before / every + slack);
}

}  // namespace

Trainer::Trainer(const Parts& parts, const TrainConfig& config, const Job& job, const Schedule& schedule)
    : at_(parts),
      config_(config),
      job_(job),
      schedule_(schedule),
      in_flight_(parts.engine.backend(), parts.collectives) {}

std::string Trainer::where() const {
  return fmt::format("epoch {}, step {}, {}", working_epoch_ + 1, working_step_ + 1, name_of(progress().activity()));
}

Exit Trainer::run(Position position) try {
  position_ = position;
  working_epoch_ = position.epoch;
  working_step_ = position.step;
  last_ = job_.total_steps;
  if (config_.run_epochs > 0) {
    last_ = std::min(last_, job_.timeline.step(job_.timeline.epochs(position.step) + config_.run_epochs));
  }
  if (last_ < job_.total_steps) limit_ = fmt::format("--run-epochs {}", config_.run_epochs);
  if (config_.max_steps > 0 && position.step + config_.max_steps < last_) {
    last_ = position.step + config_.max_steps;
    limit_ = fmt::format("--max-steps {}", config_.max_steps);
  }
  if (position.step >= job_.total_steps && !validation_missing() && at_.checkpointing.from_last) {
    log::info("nothing is left to do: the run is at the end of epoch {}, step {}; more --epochs go on", position.epoch,
              position.step);
    return Exit::ok;
  }
  // Stopped at the end of an epoch, before its validation.
  if (validation_due() && validation_missing()) validate();
  while (!stops() && position_.step < last_ && !target_reached_) {
    tell(RunStage::train);
    const auto begin = real_clock().now();
    if (order_ == nullptr) order_ = &at_.data.begin_epoch(position_.epoch, position_.step_in_epoch);
    step();
    const auto waiting = real_clock().now();
    agree_on_stop();
    const double waited = seconds_since(waiting);
    for (Interval* sums : {&interval_, &epoch_}) sums->add_wait(waited);
    const bool epoch_ends = position_.step_in_epoch >= job_.timeline.steps(position_.epoch);
    if (interval_ends()) log_interval(epoch_ends);
    if (epoch_ends) end_epoch();
    const double seconds = seconds_since(begin);
    at_.foreteller.step_done(seconds, position_.step);
    if (at_.rehearsal != nullptr && position_.step == position.step + 1) limit_rehearsal(seconds);
    if (stops()) break;
    if (validation_due()) validate();
    if (!stops()) save_where_due();
  }
  if (!stops() && validation_missing()) validate();
  if (superseded_by_ > 0) return leave_to_newer();
  const bool finished = (position_.step >= last_ || target_reached_) && !validation_missing();
  const auto saving = real_clock().now();
  const Exit saved = save_last();
  if (saved == Exit::superseded) return leave_to_newer();
  if (saved != Exit::ok) return saved;
  if (at_.rehearsal != nullptr) report_rehearsal(seconds_since(saving));
  if (finished) {
    if (position_.step < job_.total_steps && !target_reached_) tell_limit();
    return Exit::ok;
  }
  log::info("stopped on request ({}) at epoch {}, step {}; resubmit with --resume auto", name_of(stop_),
            position_.epoch + 1, position_.step);
  return Exit::stopped;
} catch (const Error& e) {
  // Whatever fails in a run that goes on elsewhere (files that are gone, ranks that have left) fails because of that.
  // Not asked where a file system may have died.
  if (e.code() != Exit::communication) at_.checkpointing.fence().check();
  fail(e.code(), "{} (at {})", e.what(), where());
}

bool Trainer::interval_ends() const {
  return position_.step % config_.output.print_every == 0 ||
         position_.step_in_epoch >= job_.timeline.steps(position_.epoch) || position_.step == last_;
}

bool Trainer::validation_due() const {
  return position_.step > 0 && epochs_due(config_.val_interval, position_.step, job_.timeline);
}

bool Trainer::validation_missing() const {
  return evaluator() != nullptr && at_.checkpointing.validated_step != position_.step;
}

Exit Trainer::save_last() {
  tell(RunStage::save);
  if (!config_.checkpoint.save) return Exit::ok;
  if (trouble_ == Exit::ok) at_.checkpointing.save("last", position_);
  const Exit code = at_.checkpointing.finish();
  if (code != Exit::ok && code != Exit::superseded && job_.rank == 0) {
    log::report_error(
        fmt::format("{} at epoch {}, step {}; make room or mend the file system, then go on from the newest "
                    "checkpoint with --resume auto",
                    trouble_ == Exit::ok ? "the last checkpoint could not be saved"
                                         : "checkpoints can't be saved again and again: leaving",
                    position_.epoch + 1, position_.step));
  }
  return code;
}

void Trainer::tell_limit() {
  log::info("stopped by {} at epoch {}, step {} of {}; --resume auto goes on", limit_,
            position_.step_in_epoch == 0 ? position_.epoch : position_.epoch + 1, position_.step, job_.total_steps);
  if (at_.state == nullptr) return;
  at_.state->update([&](RunState& state) { state.stop = limit_; });
}

Exit Trainer::leave_to_newer() const {
  if (job_.rank == 0) {
    const Index newer = superseded_by_ > 0 ? superseded_by_ : at_.checkpointing.fence().newer();
    log::report_error(
        fmt::format("attempt {} goes on with this run (this is attempt {}): leaving at epoch {}, step {} without a "
                    "checkpoint; don't submit this job again",
                    newer, at_.checkpointing.fence().number(), position_.epoch + 1, position_.step));
  }
  return Exit::superseded;
}

void Trainer::tell(RunStage stage) {
  if (at_.state == nullptr) return;
  at_.state->update([&](RunState& state) {
    state.stage = stage;
    state.epoch = std::min(position_.epoch + 1, state.epochs);
    state.step = position_.step;
    if (stop_ != StopReason::none && state.stop.empty()) {  // another rank was asked
      state.stop = name_of(stop_);
      state.stop_time = wall_seconds();
    }
  });
}

StepVote Trainer::own_vote() {
  StepVote vote{.stop = stop_reason(), .finished_parts = at_.checkpointing.finished_parts()};
  if (at_.state != nullptr) vote.superseded_by = at_.state->superseded_by();
  if (!save_asked_ && at_.checkpointing.minutes_are_up()) {
    vote.save = save_asked_ = true;  // one vote until it is fulfilled: it is agreed a step later
  }
  return vote;
}

bool Trainer::agree_on_stop() {
  const StepVote agreed = agree_later(at_.communicator, own_vote());
  save_due_ = save_due_ || agreed.save;
  stop_ = std::max(stop_, agreed.stop);
  superseded_by_ = std::max(superseded_by_, agreed.superseded_by);
  at_.checkpointing.advance(agreed.finished_parts);
  trouble_ = at_.checkpointing.trouble();
  if (trouble_ != Exit::ok && trouble_ != Exit::superseded) {
    at_.checkpointing.finish();  // the next save is under way perhaps, and gets through: then the trouble is over
    trouble_ = at_.checkpointing.trouble();
  }
  return stops();
}

/// --inject-fault, for tests: on that rank at that step; a rank that was made slow stays so.
bool Trainer::fault_is(const char* kind) const {
  if (config_.fault_kind != kind || config_.fault_rank != job_.rank) return false;
  return config_.fault_kind.starts_with("slow") ? position_.step >= config_.fault_step
                                                : position_.step == config_.fault_step;
}

void Trainer::step() {
  const auto begin = real_clock().now();
  launch_seconds_ = 0;
  const Index step = position_.step, in_epoch = position_.step_in_epoch;
  working_epoch_ = position_.epoch;
  working_step_ = step;
  progress().at(working_epoch_ + 1, step + 1);
  progress().enter(Activity::compute);
  if (fault_is("throw")) fail(Exit::internal, "injected fault (--inject-fault)");
  if (fault_is("stall")) {
    std::this_thread::sleep_for(std::chrono::hours(24));
  }
  at_.engine.backend().set_step({.rate = static_cast<float>(rate(step)),
                                 .momentum = static_cast<float>(config_.optimiser.momentum),
                                 .ema_decay = at_.average.decay(step),
                                 .seed = config_.seed,
                                 .step = step});
  // What a launch waits for inside (an update that needs a sum) is communication, not computation; what the host waits
  // for at the end of a turn is the device's work.
  double comm = 0;
  for (int t = 0; t < job_.turns; ++t) {
    turn(job_.replica(t));
    if (t + 1 == job_.turns) break;
    // Programs hold the numbers and rows of so many turns only, and would wait for an older one without a deadline.
    comm += at_.collectives.take_wait_seconds();
    const auto working = real_clock().now();
    in_flight_.launched("an earlier turn");
    launch_seconds_ += seconds_since(working);
    static_cast<void>(at_.collectives.take_wait_seconds());
  }
  progress().enter(Activity::communication);
  const auto averaging = real_clock().now();
  at_.sync.step_done(step);
  at_.average.step_done(step);
  launch_seconds_ += seconds_since(averaging);
  comm += at_.collectives.take_wait_seconds();
  const auto working = real_clock().now();
  in_flight_.launched("an earlier step");
  const Index images = order_->total(in_epoch);
  ++position_.step;
  ++position_.step_in_epoch;
  position_.images += images;

  // Where the host reads device memory the counters cost nothing; elsewhere they would stall the queue.
  if (at_.engine.backend().host_reads() || interval_ends()) take_counters();
  launch_seconds_ += seconds_since(working);
  if (config_.sync.digest_every > 0 && position_.step % config_.sync.digest_every == 0) check_weights();
  if (config_.output.monitor > 0 && position_.step % config_.output.monitor == 0) monitor();

  const double seconds = seconds_since(begin);
  const double data = at_.data.take_wait_seconds(), compute = std::max(0.0, launch_seconds_ - comm);
  static_cast<void>(at_.collectives.take_wait_seconds());
  if (at_.metrics != nullptr) {
    at_.metrics->progress(position_.epoch + 1, position_.step_in_epoch, job_.timeline.steps(position_.epoch),
                          images_per_second_);
  }
  interval_.add_step(seconds, data, compute, comm);
  epoch_.add_step(seconds, data, compute, comm);
}

void Trainer::turn(int replica) {
  const Index in_epoch = position_.step_in_epoch;
  const Index samples = replica < 0 ? 0 : order_->count(in_epoch, replica);
  Engine& engine = at_.engine;
  Program* program = nullptr;
  if (samples > 0) {
    program = &engine.training(samples, job_.timeline.phase(position_.epoch));
    const Index total = order_->total(in_epoch);
    progress().enter(Activity::data);
    Batch batch = at_.data.next(in_epoch, replica);
    progress().enter(Activity::compute);
    batch.replica = replica;
    batch.scale = at_.sync.scale(samples, total);
    batch.norm_scale = 1.F / static_cast<float>(engine.plan().sync_bn ? total : samples);
    if (fault_is("nan")) {
      batch.scale = std::numeric_limits<float>::quiet_NaN();
    }
    program->feed(batch);
  }
  const auto begin = real_clock().now();
  const auto stages = engine.stages();
  const std::uint64_t key =
      mix_bits((job_.timeline.phase(position_.epoch) << 48) + static_cast<std::uint64_t>(samples) * 1048576U +
               static_cast<std::uint64_t>(replica + 1));
  const auto body = [&] {
    if (program == nullptr) engine.backend().fill(engine.gradients(), engine.plan().table.block(), 0.F);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (program != nullptr) {
        progress().mark();
        engine.backend().replay(key + s + 1, [&] { program->launch(s, at_.sync.set(replica)); });
      }
      at_.sync.ready(s, stages[s], replica);
      at_.collectives.poll();
    }
    at_.sync.replica_done(replica, samples);
  };
  at_.sync.begin_replica(replica, samples);
  if (fault_is("slow-compute")) std::this_thread::sleep_for(std::chrono::duration<double>(config_.fault_seconds));
  if (at_.sync.capturable(replica)) {
    engine.backend().replay(key, body);
  } else {
    body();
  }
  launch_seconds_ += seconds_since(begin);
}

/// A phase with another batch has another rate, where --lr-scaling says so.
double Trainer::rate(Index step) const {
  const Timeline& timeline = job_.timeline;
  return schedule_.rate(timeline.even_step(step)) * at_.rate_factors[timeline.phase(timeline.epoch_of(step))];
}

Evaluator* Trainer::evaluator() const { return at_.data.evaluator(position_.data_epoch()); }

void Trainer::take_counters() {
  at_.collectives.await(at_.engine.backend().counters_ready(), "counters");
  const Counters counters = at_.engine.backend().take_counters();
  check_finite(counters);
  interval_.add(counters);
  epoch_.add(counters);
}

void Trainer::log_interval(bool end_of_epoch) {
  const auto fill = [&](StepRecord& record) {
    record.epoch = position_.epoch + 1;
    record.step = position_.step;
    record.step_in_epoch = position_.step_in_epoch;
    record.steps_per_epoch = job_.timeline.steps(position_.epoch);
    record.images_seen = position_.images;
    record.rate = rate(position_.step - 1);
  };
  StepRecord record = interval_.reduce(at_.communicator);
  fill(record);
  if (record.seconds > 0) images_per_second_ = static_cast<double>(record.images) / record.seconds;
  const auto batch = static_cast<double>(at_.global_batches[job_.timeline.phase(position_.epoch)]);
  if (images_per_second_ > 0) at_.checkpointing.expect_step(batch / images_per_second_);
  const double left = static_cast<double>(job_.total_steps - position_.step) * batch;
  record.eta_seconds = images_per_second_ > 0 ? left / images_per_second_ : 0;
  if (at_.metrics != nullptr) at_.metrics->train(record);
  if (at_.state != nullptr) {
    at_.state->update([&](RunState& state) {
      state.images_per_second = images_per_second_;
      state.eta_seconds = record.eta_seconds;
    });
  }
  if (!end_of_epoch) return;
  const RankSpread ranks = epoch_.compare(at_.communicator);
  const StepRecord whole = epoch_.reduce(at_.communicator);
  epoch_record_ = {.epoch = position_.epoch + 1,
                   .images = whole.images,
                   .seconds = whole.seconds,
                   .loss = whole.loss,
                   .top1 = whole.top1,
                   .rate = record.rate,
                   .data_seconds = whole.data_seconds,
                   .compute_seconds = whole.compute_seconds,
                   .comm_seconds = whole.comm_seconds,
                   .ranks = ranks};
  if (at_.metrics != nullptr) at_.metrics->epoch(epoch_record_);
}

void Trainer::end_epoch() {
  ++position_.epoch;
  position_.step_in_epoch = 0;
  order_ = nullptr;
}

void Trainer::validate() {
  if (evaluator() == nullptr) return;
  take_counters();  // in the middle of an interval they would be counted with the evaluation's
  tell(RunStage::evaluate);
  const auto begin = real_clock().now();
  const auto result = evaluator()->run(at_.average.validated(), [&] { return agree_on_stop(); });
  if (!result) return;  // done by the job that goes on
  ValidationRecord record = *result;
  at_.checkpointing.validated_step = position_.step;
  // The epoch that has just ended, or the one that goes on.
  record.epoch = position_.step_in_epoch == 0 ? position_.epoch : position_.epoch + 1;
  record.step = position_.step;
  at_.foreteller.validation_done(seconds_since(begin), record.images);
  if (at_.metrics != nullptr) at_.metrics->validation(record);
  const bool best = record.top1() > at_.checkpointing.best_top1;
  at_.checkpointing.best_top1 = std::max(at_.checkpointing.best_top1, record.top1());
  log::info("epoch {} validation{}: top1 {:.2f} % ({}/{}), top{} {:.2f} %, loss {:.4f}, best {:.2f} %, {:.1f} s",
            record.epoch, at_.average.is_on() ? " of the moving average" : "", record.top1(), record.top1_count,
            record.images, record.k, record.topk(), record.loss, at_.checkpointing.best_top1, record.seconds);
  if (best && config_.checkpoint.save) at_.checkpointing.save("best", position_, Checkpointing::Content::model);
  if (config_.target_accuracy > 0 && record.top1() >= config_.target_accuracy) {
    target_reached_ = true;
    log::info("target of {} % reached", config_.target_accuracy);
  }
}

void Trainer::save_where_due() {
  if (!config_.checkpoint.save) return;
  const CheckpointConfig& every = config_.checkpoint;
  const bool steps = every.save_every_steps > 0 && position_.step % every.save_every_steps == 0;
  const bool epochs = epochs_due(every.save_every, position_.step, job_.timeline);
  if (!steps && !epochs && !save_due_) return;
  save_asked_ = save_due_ = false;
  const bool border = position_.step_in_epoch == 0;
  const auto begin = real_clock().now();
  at_.checkpointing.save(
      border && epochs ? fmt::format("epoch-{:04d}", position_.epoch) : fmt::format("step-{:08d}", position_.step),
      position_);
  at_.foreteller.save_done(seconds_since(begin));
}

}  // namespace convoy
