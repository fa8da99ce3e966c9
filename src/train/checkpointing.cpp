// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/log.hpp"
#include "core/pulse.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"

namespace convoy {

namespace {

constexpr double slow_bytes_per_second = 1e8, slow_start_seconds = 1;

bool holds_damaged_checkpoints(const std::string& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().extension() == ".damaged") return true;
  }
  return false;
}

}  // namespace

std::string checkpoint_to_resume(Communicator& communicator, const CheckpointConfig& config) {
  if (config.resume.empty()) return {};
  if (config.resume != "auto") return resolve_checkpoint(config.resume);
  std::string path = find_checkpoint(communicator, config.folder);
  if (path.empty() && communicator.rank() == 0) {
    if (holds_damaged_checkpoints(config.folder)) {
      log::warn("no checkpoint in '{}' is whole: starting afresh; the damaged ones are put aside", config.folder);
    } else {
      log::info("no checkpoint in '{}': starting afresh", config.folder);
    }
  }
  return path;
}

Position same_fraction(const Position& position, Index steps_then, Index steps_now) {
  Position moved = position;
  const double fraction =
      steps_then > 0 ? static_cast<double>(position.step_in_epoch) / static_cast<double>(steps_then) : 0;
  moved.step_in_epoch = std::llround(fraction * static_cast<double>(steps_now));
  if (moved.step_in_epoch >= steps_now) {
    ++moved.epoch;
    moved.step_in_epoch = 0;
  }
  moved.step = moved.epoch * steps_now + moved.step_in_epoch;
  return moved;
}

Checkpointing::Checkpointing(Communicator& communicator, Collectives& collectives, Engine& engine, Sync& sync,
                             const TrainConfig& config, const Job& job, const KeptLimit& limit, const Attempt& attempt,
                             StateFile* state)
    : communicator_(communicator),
      collectives_(collectives),
      engine_(engine),
      sync_(sync),
      config_(config),
      job_(job),
      limit_(limit),
      attempt_(attempt),
      state_(state) {
  // Until a save has been measured.
  const double bytes = static_cast<double>(engine.layout().count()) * sizeof(float);
  limit_.reserve(config.checkpoint.save ? slow_start_seconds + bytes / slow_bytes_per_second : 0);
}

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
    const SetLayout& layout = engine_.layout();
    const Checkpoint loaded = load_checkpoint(resolve_checkpoint(config_.checkpoint.weights), engine_.plan(), layout,
                                              {.weights_only = true, .shards = false});
    for (const Range& range : {layout.values, layout.statistics}) {
      std::copy_n(loaded.set.block.begin() + range.begin, range.count, block.begin() + range.begin);
    }
    log::info("weights from '{}'", loaded.path);
  }
  set_all(block);
}

Position Checkpointing::resume(const std::string& path) {
  const Checkpoint loaded = load_checkpoint(path, engine_.plan(), engine_.layout(),
                                            {.first_replica = job_.run.first, .replica_count = job_.run.count});
  const CheckpointMeta& meta = loaded.meta;
  const auto number = [&](const char* name, double otherwise) {
    const auto found = meta.numbers.find(name);
    return found == meta.numbers.end() ? otherwise : found->second;
  };
  best_top1 = number("best_top1", -1);
  validated_step = static_cast<Index>(number("validated_step", -1));
  set_all(loaded.set.block);
  Position position = meta.position;
  const auto steps_then = static_cast<Index>(number("steps_per_epoch", 0));
  const bool local_then = meta.local_steps > 0, local_now = config_.sync.mode == SyncMode::weights;
  if (meta.replicas == job_.replicas && steps_then == job_.steps_per_epoch && local_then == local_now) {
    if (const std::string difference = what_differs(meta); !difference.empty()) {
      log::info("{} from that of '{}': training goes on, but not bit for bit", difference, path);
    }
    if (local_now) restore(loaded.shards);
  } else {
    position = same_fraction(position, steps_then, job_.steps_per_epoch);
    log::info(
        "'{}' was written by {} replicas with {} steps an epoch and --sync {}; this job has {} replicas, {} steps and "
        "--sync {}: it goes on from the averaged model at step {} of epoch {}",
        path, meta.replicas, steps_then, local_then ? "weights" : "gradients", job_.replicas, job_.steps_per_epoch,
        local_now ? "weights" : "gradients", position.step_in_epoch, position.epoch + 1);
  }
  log::info("resumed from '{}': epoch {}, step {}", path, position.epoch + 1, position.step);
  return position;
}

std::string Checkpointing::what_differs(const CheckpointMeta& meta) const {
  if (meta.configuration_hash != configuration_hash(config_)) return "the configuration differs";
  const auto device = meta.texts.find("device");
  if (device != meta.texts.end() && device->second != engine_.backend().describe()) return "the device differs";
  return {};
}

void Checkpointing::restore(const std::vector<Shard>& shards) {
  std::vector<Index> since(static_cast<std::size_t>(job_.run.count), 0);
  for (const Shard& shard : shards) {
    engine_.upload(sync_.set(shard.replica), shard.set.block, collectives_);
    since.at(static_cast<std::size_t>(shard.replica - job_.run.first)) = shard.samples_since_average;
  }
  sync_.restore(since);
}

bool Checkpointing::minutes_are_up() const {
  return config_.checkpoint.save_every_minutes > 0 && communicator_.rank() == 0 &&
         seconds_between(saved_at_, Clock::now()) >= 60 * config_.checkpoint.save_every_minutes;
}

void Checkpointing::save(const std::string& name, const Position& position, Content content) {
  const ActivityScope phase(Activity::checkpoint);
  const auto begin = Clock::now();
  CheckpointMeta meta;
  meta.run = attempt_.record.run;
  meta.attempt = attempt_.record.number;
  meta.position = position;
  meta.replicas = job_.replicas;
  meta.ranks = job_.ranks;
  meta.local_steps = config_.sync.mode == SyncMode::weights ? config_.sync.local_steps : 0;
  meta.plan_digest = engine_.plan().digest;
  meta.configuration_hash = configuration_hash(config_);
  meta.texts = {{"model", engine_.plan().graph.model},
                {"choices", engine_.choices()},
                {"configuration", to_ini(config_)},
                {"device", engine_.backend().describe()},
                {"build", build_id()}};
  meta.numbers = {{"best_top1", best_top1},
                  {"validated_step", static_cast<double>(validated_step)},
                  {"steps_per_epoch", static_cast<double>(job_.steps_per_epoch)},
                  {"batch", static_cast<double>(job_.order.batch)},
                  {"classes", static_cast<double>(engine_.plan().graph.classes)}};

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
                  shards, attempt_.fence);
  if (communicator_.rank() == 0) drop_old_checkpoints(config_.checkpoint.folder, config_.checkpoint.keep);
  saved_at_ = Clock::now();
  const double seconds = seconds_between(begin, saved_at_);
  limit_.reserve(1.5 * seconds);
  if (state_ == nullptr || name == "best") return;
  state_->update([&](RunState& state) {
    state.checkpoint = path_from(config_.output.folder, config_.checkpoint.folder + "/" + name + ".h5");
    state.checkpoint_step = position.step;
    state.checkpoint_time = wall_seconds();
    state.checkpoint_seconds = seconds;
  });
}

}  // namespace convoy
