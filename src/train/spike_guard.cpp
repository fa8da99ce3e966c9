// SPDX-License-Identifier: Apache-2.0
#include "train/spike_guard.hpp"

#include <algorithm>
#include <cmath>

#include "checkpoint/file.hpp"
#include "comm/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/hash.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// Bounds of a spike are no lower than these. A run needs no rescue from a loss below one nat; gradient norms have no
/// such scale.
constexpr double least_loss = 1, least_norm = 0;
/// Rollbacks that may follow each other with fewer than `calm_intervals` between them. If one more is due, going back
/// doesn't help.
constexpr Index most_rollbacks = 3;
/// After so many intervals without a spike the earlier rollbacks no longer count. The medians are then those of these
/// intervals alone.
constexpr Index calm_intervals = SpikeHistory::most;

/// False if the replicas average weights: a rank then holds the gradients of only one of its replicas.
bool sums_gradients(const TrainingJob& job) { return local_steps_of_checkpoint(job.shape.sync) == 0; }

/// An interval ended calmly at `end`. Returns until when its checkpoints are known to be good. A loss is that of the
/// weights before the step, so only the norm of the gradients tells whether the last update was good, too.
Stamp proved_until(const Stamp& end, bool knows_norm) { return {end.attempt, knows_norm ? end.step : end.step - 1}; }

/// On rank 0. Returns the newest undamaged checkpoint that this run saved at `then` or earlier; empty: there is none.
std::string checkpoint_before(const TrainingJob& job, const Stamp& then) {
  const Lineage line(job.attempt.folders.back());
  for (const std::string& path : list_checkpoints(job.config.checkpoint.folder, {}, line))
    if (line.known(peek(path)) <= then && find_damage(path).empty()) return path;
  return {};
}

}  // namespace

SpikeGuard::SpikeGuard(const TrainConfig& config)
    : action_(config.on_spike),
      configuration_(configuration_hash(config)),
      losses_(config.spike_factor, least_loss),
      norms_(config.spike_factor, least_norm) {}

void SpikeGuard::attach(TrainingJob& job) {
  job_ = &job;
  const Stamp now{job.attempt.record.number, job.state.position.step};
  interval_first_step_ = now.step + 1;
  if (interval_begin_.step < 0) {
    interval_begin_ = now;
    return;
  }
  // Checkpoints of an interval may hold a spike until its end, when its loss is judged. So an attempt that continues
  // within an interval keeps the interval's beginning.
  const bool counts_alike = job.resume->file.meta.position.step == now.step;
  if (counts_alike) interval_first_step_ = interval_begin_.step + 1;
  // from_attempt is 0 if no attempt of this folder wrote the checkpoint. Then only checkpoints without a known attempt
  // are older than it, and what this attempt saves belongs to the interval.
  interval_begin_.attempt = std::min(interval_begin_.attempt, std::max<Index>(job.attempt.record.from_attempt, 0));
}

void SpikeGuard::write(std::map<std::string, double>& numbers) const {
  if (action_ != OnSpike::rollback) return;
  losses_.write("spike_loss", numbers);
  norms_.write("spike_norm", numbers);
  numbers["spike_undone_steps"] = static_cast<double>(undone_steps_);
  numbers["spike_interval_begin"] = static_cast<double>(interval_begin_.step);
  numbers["spike_interval_attempt"] = static_cast<double>(interval_begin_.attempt);
  numbers["spike_returns"] = static_cast<double>(rollbacks_);
  numbers["spike_calm_intervals"] = static_cast<double>(calm_intervals_);
}

void SpikeGuard::read(const CheckpointMeta& meta) {
  const auto& numbers = meta.numbers;
  losses_.read("spike_loss", numbers);
  norms_.read("spike_norm", numbers);
  const auto stored = [&](const char* name, Index otherwise) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : static_cast<Index>(found->second);
  };
  undone_steps_ = stored("spike_undone_steps", 0);
  rollbacks_ = stored("spike_returns", 0);
  calm_intervals_ = stored("spike_calm_intervals", 0);
  if (meta.configuration_hash != configuration_) rollbacks_ = 0;  // somebody has changed what made it diverge
  interval_begin_ = {stored("spike_interval_attempt", meta.attempt), stored("spike_interval_begin", -1)};
}

double SpikeGuard::gradient_norm() {
  const Index count = job_->engine->plan().table.trained_floats();
  Backend& device = job_->engine->backend();
  gradients_.resize(static_cast<std::size_t>(count));
  job_->collectives->await(device.download(gradients_.data(), job_->engine->gradients(), count, device.record()),
                           "download of the gradients");
  double squares = 0;
  for (const float value : gradients_) squares += static_cast<double>(value) * static_cast<double>(value);
  if (!std::isfinite(squares)) squares = 0;  // an update that was skipped, which halves the scale of the loss
  job_->communicator.maximum(std::span(&squares, 1), "norms of the gradients");
  return std::sqrt(squares);
}

void SpikeGuard::step_done(LoopState& state) {
  if (action_ == OnSpike::off || !job_->training_log.interval_ends(state)) return;
  const double loss = job_->training_log.interval_loss();
  const double norm = action_ == OnSpike::rollback && sums_gradients(*job_) ? gradient_norm() : 0;
  const auto loss_bound = losses_.exceeded(loss), norm_bound = norms_.exceeded(norm);
  bool moves_on = true;  // false: the weights stay spiked, so the next interval keeps the beginning of this one
  if (!loss_bound && !norm_bound) {
    if (std::isfinite(loss)) losses_.add(loss);
    if (norm > 0) norms_.add(norm);
    if (++calm_intervals_ >= calm_intervals) rollbacks_ = 0;
  } else {
    const std::string spike = loss_bound ? fmt::format("the loss of steps {} to {} is {:.4g}, above {:.4g}",
                                                       interval_first_step_, state.position.step, loss, *loss_bound)
                                         : fmt::format("the gradient of step {} has a norm of {:.4g}, above {:.4g}",
                                                       state.position.step, norm, *norm_bound);
    if (action_ == OnSpike::rollback) {
      moves_on = roll_back(state, spike);
    } else if (job_->shape.rank == 0) {
      log::warn("{} (--spike-factor): --on-spike rollback would go back to a checkpoint", spike);
      job_->metrics->event("spike", {{"action", "warn"}}, {{"step", state.position.step}, {"loss", loss}});
    }
  }
  if (moves_on) interval_begin_ = {job_->attempt.record.number, state.position.step};
  interval_first_step_ = state.position.step + 1;
}

std::string SpikeGuard::put_newer_aside(const Stamp& than) {
  return ask_first_rank(job_->communicator, "moving checkpoints aside after a spike", [&] {
    return job_->checkpointing.put_newer_aside(than, Checkpointing::Best::stays).value_or("");
  });
}

void SpikeGuard::give_up(const std::string& spike, Index from) {
  job_->sync->averaged_weights();  // no average may be under way when the job's memory is freed
  if (job_->shape.rank == 0)
    log::report_error(fmt::format(
        "{}: the run diverges (rolled back {} times, with fewer than {} intervals without a spike between them); lower --lr, or clip gradients (--clip-grad-norm), and continue from step {} with --resume auto",
        spike, most_rollbacks, calm_intervals, from));
  throw AgreedError{Exit::usage};
}

bool SpikeGuard::roll_back(LoopState& state, const std::string& spike) {
  TrainingJob& job = *job_;
  job.checkpointing.finish();
  const Stamp then = proved_until(interval_begin_, sums_gradients(job));
  const std::string path = ask_first_rank(job.communicator, "looking for a checkpoint from before a spike",
                                          [&] { return checkpoint_before(job, then); });
  if (path.empty()) {
    if (job.shape.rank == 0)
      log::warn("{}, and there is no checkpoint from before it: training goes on; save more often (--save-every-steps)",
                spike);
    return false;
  }
  const FoundCheckpoint found = open_checkpoint(job.communicator, path);
  const Index from = job.checkpointing.place_of(found.file.meta).step;
  calm_intervals_ = 0;
  ++rollbacks_;
  if (rollbacks_ <= most_rollbacks) job.checkpointing.return_to(found);
  const std::string aside = put_newer_aside({found.file.meta.attempt, found.file.meta.position.step});
  if (rollbacks_ > most_rollbacks) give_up(spike, from);
  state.save_due = true;
  const Index undone = state.position.step - from;
  undone_steps_ += undone;
  if (job.shape.rank != 0) return true;
  log::warn("{}: back to the weights of '{}' (step {}); {} since then are undone, and their batches are skipped{}",
            spike, path, from, counted(undone, "step"),
            aside.empty() ? "" : fmt::format("; the checkpoints since then are in '{}'", aside));
  job.metrics->event("spike", {{"action", "rollback"}, {"checkpoint", path}},
                     {{"step", state.position.step},
                      {"checkpoint_step", from},
                      {"undone_steps", undone},
                      {"skipped_images", state.position.images - found.file.meta.position.images}});
  return true;
}

}  // namespace convoy
