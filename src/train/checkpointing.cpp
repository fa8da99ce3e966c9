// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.hpp"

#include <cmath>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/log.hpp"
#include "core/version.hpp"

namespace convoy {

std::string checkpoint_to_resume(Communicator& communicator, const CheckpointConfig& config) {
  if (config.resume.empty()) return {};
  if (config.resume != "auto") return config.resume;
  std::string path = find_checkpoint(communicator, config.folder);
  if (path.empty()) log::info("no checkpoint in '{}': starting afresh", config.folder);
  return path;
}

Checkpointing::Checkpointing(Communicator& communicator, Collectives& collectives, Engine& engine, Sync& sync,
                             const TrainConfig& config, const Job& job)
    : communicator_(communicator),
      collectives_(collectives),
      engine_(engine),
      sync_(sync),
      config_(config),
      job_(job) {}

void Checkpointing::set_all(const std::vector<float>& block) {
  if (config_.sync.mode == SyncMode::gradients || job_.run.count == 0) {
    engine_.upload(sync_.set(-1), block, collectives_);
    return;
  }
  for (int i = 0; i < job_.run.count; ++i) engine_.upload(sync_.set(job_.run.first + i), block, collectives_);
}

void Checkpointing::start() {
  std::vector<float> block = engine_.initial_set(config_.seed);
  if (!config_.checkpoint.weights.empty()) {
    block = load_checkpoint(config_.checkpoint.weights, engine_.plan(), engine_.layout(),
                            {.weights_only = true, .shards = false})
                .set.block;
    log::info("weights from '{}'", config_.checkpoint.weights);
  }
  set_all(block);
}

Position Checkpointing::resume(const std::string& path) {
  const Checkpoint loaded = load_checkpoint(path, engine_.plan(), engine_.layout(),
                                            {.first_replica = job_.run.first, .replica_count = job_.run.count});
  const CheckpointMeta& meta = loaded.meta;
  if (const auto best = meta.numbers.find("best_top1"); best != meta.numbers.end()) best_top1 = best->second;
  set_all(loaded.set.block);
  Position position = meta.position;
  if (meta.replicas == job_.replicas) {
    if (meta.configuration_hash != configuration_hash(config_)) {
      log::info("the configuration differs from that of '{}': training goes on, but not bit for bit", path);
    }
    std::vector<Index> since(static_cast<std::size_t>(job_.run.count), 0);
    for (const Shard& shard : loaded.shards) {
      engine_.upload(sync_.set(shard.replica), shard.set.block, collectives_);
      since.at(static_cast<std::size_t>(shard.replica - job_.run.first)) = shard.samples_since_average;
    }
    sync_.restore(since);
  } else {
    const auto done = meta.numbers.find("steps_per_epoch");
    const double fraction = done == meta.numbers.end() || done->second <= 0
                                ? 0
                                : static_cast<double>(position.step_in_epoch) / done->second;
    position.step_in_epoch = std::llround(fraction * static_cast<double>(job_.steps_per_epoch));
    position.step = position.epoch * job_.steps_per_epoch + position.step_in_epoch;
    log::info(
        "'{}' was written by {} replicas, this job has {}: it goes on from the averaged model at step {} of epoch {} "
        "({:.1f} % of the epoch); --replicas {} would go on exactly",
        path, meta.replicas, job_.replicas, position.step_in_epoch, position.epoch, 100 * fraction, meta.replicas);
  }
  log::info("resumed from '{}': epoch {}, step {}", path, position.epoch, position.step);
  return position;
}

bool Checkpointing::minutes_are_up() const {
  return config_.checkpoint.save_every_minutes > 0 && communicator_.rank() == 0 &&
         seconds_between(saved_at_, Clock::now()) >= 60 * config_.checkpoint.save_every_minutes;
}

void Checkpointing::save(const std::string& name, const Position& position, Content content) {
  CheckpointMeta meta;
  meta.position = position;
  meta.replicas = job_.replicas;
  meta.ranks = job_.ranks;
  meta.local_steps = config_.sync.mode == SyncMode::weights ? config_.sync.local_steps : 0;
  meta.plan_digest = engine_.plan().digest;
  meta.configuration_hash = configuration_hash(config_);
  meta.texts = {{"model", engine_.plan().graph.model},
                {"choices", engine_.choices()},
                {"configuration", to_ini(config_)},
                {"build", build_id()}};
  meta.numbers = {{"best_top1", best_top1}, {"steps_per_epoch", static_cast<double>(job_.steps_per_epoch)}};

  const HostSet averaged{engine_.download(sync_.averaged(), collectives_)};
  std::vector<Shard> shards;
  if (content == Content::everything && config_.sync.mode == SyncMode::weights && !sync_.averages_are_current()) {
    const std::vector<Index> since = sync_.samples_since_average();
    for (int i = 0; i < job_.run.count; ++i) {
      const int replica = job_.run.first + i;
      shards.push_back(
          {replica, since.at(static_cast<std::size_t>(i)), {engine_.download(sync_.set(replica), collectives_)}});
    }
  }
  save_checkpoint(communicator_, config_.checkpoint.folder, name, engine_.plan(), engine_.layout(), meta, averaged,
                  shards);
  if (communicator_.rank() == 0) drop_old_checkpoints(config_.checkpoint.folder, config_.checkpoint.keep);
  saved_at_ = Clock::now();
}

}  // namespace convoy
