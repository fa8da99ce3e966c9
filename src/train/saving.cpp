// SPDX-License-Identifier: Apache-2.0
// The part of Checkpointing that saves: what is copied, when, and what came of it.
#include <algorithm>
#include <cmath>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "train/checkpointing.hpp"

namespace convoy {
namespace {

constexpr double slow_bytes_per_second = 1e8, slow_start_seconds = 1;
// Of --save-every-minutes auto, until a save has been measured.
constexpr double longest_first_interval = 60;
constexpr int failures_tolerated = 2;

}  // namespace

Checkpointing::Checkpointing(Communicator& communicator, Collectives& collectives, Engine& engine, Sync& sync,
                             MovingAverage& average, const TrainConfig& config, const Job& job, const KeptLimit& limit,
                             const Attempt& attempt, StateFile* state)
    : communicator_(communicator),
      collectives_(collectives),
      engine_(engine),
      sync_(sync),
      average_(average),
      config_(config),
      job_(job),
      limit_(limit),
      attempt_(attempt),
      state_(state),
      saver_(communicator, {.folder = config.checkpoint.folder,
                            .keep = config.checkpoint.keep,
                            .plan = engine.plan(),
                            .layout = engine.layout(),
                            .fence = attempt.fence,
                            .patience_seconds = config.sync.deadline.abort_seconds}) {
  limit_.reserve(config.checkpoint.save ? guessed_cost() : 0);
}

double Checkpointing::guessed_cost() const {
  const double bytes = static_cast<double>(engine_.layout().count()) * sizeof(float) * (average_.is_on() ? 2 : 1);
  return slow_start_seconds + bytes / slow_bytes_per_second;
}

double Checkpointing::interval_seconds() const {
  const CheckpointConfig& config = config_.checkpoint;
  if (!config.save_auto) return 60 * config.save_every_minutes;
  // Young, Communications of the ACM 17 (1974): the time lost to saves and to failures together is least at this
  // interval.
  const auto best = [&](double cost) { return std::sqrt(2 * cost * 3600 * config.mean_failure_hours); };
  return cost_seconds_ > 0 ? best(cost_seconds_) : std::min(best(guessed_cost()), longest_first_interval);
}

bool Checkpointing::minutes_are_up() const {
  const double interval = interval_seconds();
  return interval > 0 && communicator_.rank() == 0 && seconds_since(saved_at_) >= interval;
}

CheckpointMeta Checkpointing::describe(const Position& position) const {
  CheckpointMeta meta;
  meta.run = attempt_.record.run;
  meta.attempt = attempt_.record.number;
  meta.position = position;
  meta.replicas = job_.replicas;
  meta.ranks = job_.ranks;
  meta.local_steps = config_.sync.mode == SyncMode::weights ? config_.sync.local_steps : 0;
  meta.ema_decay = config_.ema.decay;
  meta.plan_digest = engine_.plan().digest;
  meta.configuration_hash = configuration_hash(config_);
  meta.texts = {{"model", engine_.plan().graph.model},
                {"choices", engine_.choices()},
                {"configuration", to_ini(config_)},
                {"device", engine_.backend().describe()},
                {"build", build_id()}};
  const std::size_t phase = job_.timeline.phase(position.data_epoch());
  if (phase < data_texts_.size()) meta.texts.insert(data_texts_[phase].begin(), data_texts_[phase].end());
  meta.numbers = {{"best_top1", best_top1},
                  {"validated_step", static_cast<double>(validated_step)},
                  {"steps_per_epoch", static_cast<double>(job_.steps_per_epoch)},
                  {"steps_of_epoch", static_cast<double>(job_.timeline.steps(position.epoch))},
                  {"batch", static_cast<double>(job_.order.batch)},
                  {"classes", static_cast<double>(engine_.plan().graph.classes)}};
  return meta;
}

std::vector<float> Checkpointing::spare_memory() {
  if (spare_.empty()) return {};
  std::vector<float> memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void Checkpointing::save(const std::string& name, const Position& position, Content content) {
  const ActivityScope phase(Activity::checkpoint);
  const double begun = wall_seconds();
  const auto begin = real_clock().now();
  if (!saver_.idle() && averaged_step_ != position.step) {
    if (!told_slow_ && communicator_.rank() == 0) {
      log::info("the checkpoint of step {} is still being written: steps wait for it; save less often", averaged_step_);
    }
    told_slow_ = true;
    finish();
  }
  SaveSpec spec{.name = name, .meta = describe(position), .begun = begun};
  if (averaged_step_ != position.step) {
    const ParameterSet& averaged = sync_.averaged();
    averaged_step_ = position.step;
    if (communicator_.rank() == 0) {
      for (std::shared_ptr<HostSet>* copy : {&averaged_, &ema_})
        if (*copy == nullptr || copy->use_count() > 1) *copy = std::make_shared<HostSet>();
      engine_.download(averaged, averaged_->block, collectives_);
      if (average_.is_on()) average_.download(ema_->block, collectives_);
    }
  }
  spec.averaged = averaged_;
  if (average_.is_on()) spec.ema = ema_;
  spec.with_shards =
      content == Content::everything && config_.sync.mode == SyncMode::weights && !sync_.averages_are_current();
  if (spec.with_shards) {
    const std::vector<Index> since = sync_.samples_since_average();
    const Index first = sync_.values_are_current() ? engine_.layout().optimiser.begin : 0;
    for (int i = 0; i < job_.run.count; ++i) {
      const int replica = job_.run.first + i;
      Shard shard{replica, since.at(static_cast<std::size_t>(i)), {first, spare_memory()}};
      Backend& device = engine_.backend();
      const Index count = engine_.layout().count() - first;
      shard.set.block.resize(static_cast<std::size_t>(count));
      collectives_.await(
          device.download(shard.set.block.data(), sync_.set(replica).block + first, count, device.record()),
          "download of a replica");
      spec.shards.push_back(std::move(shard));
    }
  }
  saver_.begin(std::move(spec));
  saved_at_ = real_clock().now();
  stall_seconds_ = seconds_between(begin, saved_at_);
}

void Checkpointing::advance(Index finished_parts) {
  if (saver_.idle()) return;
  saver_.advance(finished_parts);
  settle();
}

Exit Checkpointing::finish() {
  saver_.finish();
  settle();
  return last_code_;
}

void Checkpointing::settle() {
  while (auto result = saver_.take_result()) {
    for (Shard& shard : result->spec.shards) spare_.push_back(std::move(shard.set.block));
    last_code_ = result->code;
    failures_ = result->code == Exit::ok ? 0 : failures_ + 1;
    if (result->code == Exit::ok && communicator_.rank() == 0) note(*result);
  }
}

void Checkpointing::note(const SaveResult& result) {
  const bool first = cost_seconds_ == 0;
  cost_seconds_ = result.seconds;
  expect_step(step_seconds_);
  const Index step = result.spec.meta.position.step;
  if (first) {
    log::info("checkpoint of step {}: {:.2f} s until it was verified and in place, steps stood still for {:.3f} s",
              step, result.seconds, stall_seconds_);
    if (config_.checkpoint.save_auto) {
      log::info("a checkpoint every {:.0f} s: sqrt(2 C M), C = {:.2f} s as measured, M = {} h (--mtbf)",
                interval_seconds(), cost_seconds_, config_.checkpoint.mean_failure_hours);
    }
  }
  if (state_ == nullptr || result.spec.name == "best") return;
  state_->note([&](RunState& state) {
    state.checkpoint =
        path_from(config_.output.folder, fmt::format("{}/{}.h5", config_.checkpoint.folder, result.spec.name));
    state.checkpoint_step = step;
    state.checkpoint_time = result.spec.begun + result.seconds;
    state.checkpoint_seconds = result.seconds;
    state.checkpoint_stall = stall_seconds_;
  });
}

void Checkpointing::expect_step(double seconds) {
  step_seconds_ = seconds;
  // A save that is under way, then the last one; the running step, and the one in which the stop is agreed on.
  if (cost_seconds_ > 0) limit_.reserve(2 * cost_seconds_ + 2 * step_seconds_);
}

Exit Checkpointing::trouble() const {
  return failures_ > failures_tolerated || last_code_ == Exit::superseded ? last_code_ : Exit::ok;
}

}  // namespace convoy
