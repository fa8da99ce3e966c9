// SPDX-License-Identifier: Apache-2.0
#include "train/training_log.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/log.hpp"
#include "run/excluded_hosts.hpp"
#include "train/training_job.hpp"
#include "train/trial.hpp"

namespace convoy {

TrainingLog::TrainingLog(TrainingJob& job) : job_(job), earlier_(job.checkpointing.sums_of_epoch) {}

bool TrainingLog::interval_ends(const LoopState& state) const {
  return state.position.step % job_.config.output.print_every == 0 || state.epoch_ended() ||
         state.position.step == state.last_step;
}

void TrainingLog::take_counters() {
  Backend& backend = job_.engine->backend();
  job_.collectives->await(backend.counters_ready(), "counters");
  const Counters counters = backend.take_counters();
  const ReplicaRun& own = job_.shape.run;
  const bool bears = job_.trial != nullptr && job_.trial->bears_divergence();
  if (!bears && counters.bad_replica >= own.first &&
      counters.bad_replica < own.first + own.count) {  // else its owner logs it
    fail(
        Exit::internal,
        "loss or gradient is not finite in replica {}; that update was not applied. Lower --lr, lengthen --warmup-epochs or check the data, and continue with --resume auto",
        counters.bad_replica);
  }
  interval_.add(counters);
  epoch_.add(counters);
}

JobSums TrainingLog::sums_of_epoch() {
  take_counters();
  JobSums sums = epoch_.total(job_.communicator);
  sums.add(earlier_);
  return sums;
}

void TrainingLog::step_begins(const LoopState& state) { job_.timer.begin_step(state.position.step + 1); }

void TrainingLog::step_done(LoopState& state) {
  // Where the host reads device memory the counters cost nothing; elsewhere they would stall the queue.
  if (job_.engine->backend().host_reads() || interval_ends(state)) {
    const StepTimer::Scope timed(job_.timer, StepPart::device);
    take_counters();
  }
  const StepSeconds seconds = job_.timer.end_step(job_.data->take_wait_seconds());
  for (Interval* sums : {&interval_, &epoch_}) sums->add(seconds);
  job_.estimate.step_took(seconds.step, state.position.step);
  ++interval_steps_;
  if (job_.metrics != nullptr && log::shows_progress()) job_.metrics->progress(progress_after(state));
  if (interval_ends(state)) log_interval(state);
}

StepProgress TrainingLog::progress_after(const LoopState& state) const {
  const Position& done = state.working;
  const Timeline& timeline = job_.shape.timeline;
  const auto batch = static_cast<double>(job_.phases[timeline.phase(done.epoch)].job.global_batch);
  const double loss = interval_.loss();
  return {.epoch = done.epoch + 1,
          .step_in_epoch = done.step_in_epoch + 1,
          .steps_per_epoch = timeline.steps(done.epoch),
          .images_per_second = images_per_second_ > 0
                                   ? images_per_second_
                                   : batch * static_cast<double>(interval_steps_) / interval_.seconds(),
          .loss = std::isnan(loss) ? loss_ : loss,
          .eta_seconds = job_.estimate.at(state.position.step).left};
}

void TrainingLog::log_interval(const LoopState& state) {
  const Position& done = state.working;
  const Timeline& timeline = job_.shape.timeline;
  StepRecord record = std::exchange(interval_, {}).total(job_.communicator).record();
  interval_steps_ = 0;
  loss_ = record.counters[Counter::loss];
  record.epoch = done.epoch + 1;
  record.step = state.position.step;
  record.step_in_epoch = done.step_in_epoch + 1;
  record.steps_per_epoch = timeline.steps(done.epoch);
  record.images_seen = state.position.images;
  record.rate = job_.optimiser.rate(done.step);
  if (record.seconds > 0) images_per_second_ = static_cast<double>(record.images) / record.seconds;
  const auto batch = static_cast<double>(job_.phases[timeline.phase(done.epoch)].job.global_batch);
  if (images_per_second_ > 0) job_.checkpointing.expect_step(batch / images_per_second_);
  record.eta_seconds = job_.estimate.at(state.position.step).left;
  if (job_.metrics != nullptr) job_.metrics->train(record);
  if (job_.state_file != nullptr) {
    job_.state_file->update([&](RunState& run) {
      run.images_per_second = images_per_second_;
      run.eta_seconds = record.eta_seconds;
    });
  }
  if (!state.epoch_ended()) return;
  const RankSpread ranks = epoch_.compare(job_.communicator);
  const Index sent_bytes = take_sent_bytes(job_.collectives.get(), told_bytes_),
              group_sent_bytes = take_sent_bytes(job_.group_collectives.get(), told_group_bytes_);
  const StepRecord whole = sums_of_epoch().record();
  epoch_ = {};
  earlier_ = {};
  if (job_.metrics == nullptr) return;
  tell_slow_hosts(ranks, record.epoch);
  job_.metrics->epoch({.epoch = record.epoch,
                       .images = whole.images,
                       .images_seen = record.images_seen,
                       .counters = whole.counters,
                       .seconds = whole.seconds,
                       .rate = record.rate,
                       .data_seconds = whole.data_seconds,
                       .compute_seconds = whole.compute_seconds,
                       .comm_seconds = whole.comm_seconds,
                       .sent_bytes = sent_bytes,
                       .group_sent_bytes = group_sent_bytes,
                       .ranks = ranks});
}

void TrainingLog::tell_slow_hosts(const RankSpread& ranks, Index epoch) const {
  const OutputConfig& output = job_.config.output;
  const SlowHosts slow = find_slow_hosts(ranks, output.slow_factor);
  for (const HostTime& host : slow.hosts) {
    const std::string reason = fmt::format("worked {:.1f} s in epoch {}, {:.1f} times the median of the hosts",
                                           host.busy, epoch, host.busy / slow.median);
    log::warn("host {} is slow: it {}{}", host.host, reason,
              output.exclude_slow ? fmt::format(" (now in '{}')", excluded_hosts_path(output.folder))
                                  : std::string("; --exclude-slow keeps the next job off it"));
    if (output.exclude_slow)
      exclude_hosts(output.folder, job_.attempt.record.number, job_.attempt.hosts, std::span(&host.first_rank, 1),
                    "slow, " + reason);
  }
}

Index TrainingLog::take_sent_bytes(const Collectives* sums, Index& told) {
  const std::optional<Index> own = sums != nullptr ? sums->sent_bytes() : std::nullopt;
  if (!own) return -1;
  std::int64_t sent = *own - std::exchange(told, *own);
  job_.communicator.sum(std::span<std::int64_t>(&sent, 1), "bytes that the ranks have sent");
  return sent;
}

}  // namespace convoy
