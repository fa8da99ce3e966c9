// SPDX-License-Identifier: Apache-2.0
#include "train/checkpointing.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "comm/agreed_error.hpp"
#include "config/hash.hpp"
#include "core/log.hpp"

namespace convoy {

namespace {

bool holds_damaged_checkpoints(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() == ".damaged") return true;
  }
  return false;
}

/// The same fraction of the epoch in steps of another length; the end of an epoch is the start of the next. `step`
/// stays.
Position same_fraction(const Position& position, Index steps_then, Index steps_now) {
  Position moved = position;
  const double fraction =
      steps_then > 0 ? static_cast<double>(position.step_in_epoch) / static_cast<double>(steps_then) : 0;
  moved.step_in_epoch = std::llround(fraction * static_cast<double>(steps_now));
  if (moved.step_in_epoch >= steps_now) {
    ++moved.epoch;
    moved.step_in_epoch = 0;
  }
  return moved;
}

}  // namespace

std::optional<FoundCheckpoint> checkpoint_to_resume(Communicator& communicator, const CheckpointConfig& config,
                                                    const Attempt& attempt, const std::string& model) {
  if (config.resume.empty()) return std::nullopt;
  if (config.resume != "auto") return open_checkpoint(communicator, config.resume);
  const auto why_foreign = [&](const FileMeta& file) {
    if (file.model != model) return fmt::format("it is of {}, this run trains {}", file.model, model);
    const bool known = std::any_of(attempt.folders.begin(), attempt.folders.end(),
                                   [&](const std::string& folder) { return knows_run(folder, file.meta.run); });
    // A folder that was copied without its attempts is taken as it is.
    const bool nobody = newest_attempt(attempt.folders.back(), attempt.record.number).number == 0;
    return known || nobody ? std::string() : fmt::format("it is of run '{}'", file.meta.run);
  };
  auto found = find_checkpoint(communicator, config.folder, why_foreign);
  if (!found && communicator.rank() == 0) {
    if (holds_damaged_checkpoints(config.folder)) {
      log::warn("no checkpoint in '{}' is whole: starting afresh; the damaged ones are put aside", config.folder);
    } else {
      log::info("no checkpoint in '{}': starting afresh", config.folder);
    }
  }
  return found;
}

void Checkpointing::set_all(const std::vector<float>& block, Replicas replicas) {
  run_agreed(communicator_, "loading the weights", [&] {
    if (replicas == Replicas::follow && job_.run.count > 0) return;
    if (config_.sync.mode == SyncMode::gradients || job_.run.count == 0) {
      engine_.upload(sync_.set(-1), block, collectives_);
      return;
    }
    for (int i = 0; i < job_.run.count; ++i) engine_.upload(sync_.set(job_.run.first + i), block, collectives_);
  });
}

void Checkpointing::start() {
  std::vector<float> block = engine_.initial_set(config_.seed);
  if (!config_.checkpoint.weights.empty()) {
    const SetLayout& layout = engine_.layout();
    const FoundCheckpoint found = open_checkpoint(communicator_, config_.checkpoint.weights, best_checkpoint);
    const Checkpoint loaded =
        load_checkpoint(communicator_, found, engine_.plan(), layout,
                        {.weights_only = true, .other_head = OtherHead::left_out, .shards = false});
    const auto& unread = loaded.unread;
    for (const StoredTensor& tensor : stored_tensors(engine_.plan(), layout)) {
      const bool weights = tensor.name.starts_with("/parameters/") || tensor.name.starts_with("/statistics/");
      const auto is_it = [&](const std::string& name) { return name.ends_with(tensor.name); };
      if (!weights || std::any_of(unread.begin(), unread.end(), is_it)) continue;
      const Range& range = tensor.range;
      std::copy_n(loaded.set.block.begin() + range.begin, range.count, block.begin() + range.begin);
    }
    log::info("weights from '{}'{}", loaded.path, loaded.meta.ema_decay > 0 ? ", their moving average" : "");
    if (!unread.empty())
      log::info("its last layer is for another number of classes: {} start anew", fmt::join(unread, ", "));
  }
  set_all(block, Replicas::alike);
  load_average(block);
}

void Checkpointing::load_average(const std::vector<float>& block) {
  if (!average_.is_on()) return;
  run_agreed(communicator_, "loading the moving average", [&] { average_.load(block, collectives_); });
}

void Checkpointing::resume_average(const Checkpoint& loaded) {
  const bool has = loaded.meta.ema_decay > 0;
  load_average(has ? loaded.ema.block : loaded.set.block);
  if (average_.is_on() && !has)
    log::info("'{}' holds no moving average of the weights: it starts from them", loaded.path);
  if (!average_.is_on() && has)
    log::info("the moving average of '{}' is dropped (--ema-decay 0): training goes on without it", loaded.path);
}

Position Checkpointing::resume(const FoundCheckpoint& found) {
  const std::string& path = found.path;
  Checkpoint loaded = load_checkpoint(communicator_, found, engine_.plan(), engine_.layout(),
                                      {.first_replica = job_.run.first, .replica_count = job_.run.count});
  const CheckpointMeta& meta = loaded.meta;
  const auto number = [&](const char* name, double otherwise) {
    const auto at = meta.numbers.find(name);
    return at == meta.numbers.end() ? otherwise : at->second;
  };
  best_top1 = number("best_top1", -1);
  validated_step = static_cast<Index>(number("validated_step", -1));
  engine_.adopt_loss_scale(loaded.set.block);
  for (Shard& shard : loaded.shards) engine_.adopt_loss_scale(shard.set.block);
  Position position = meta.position;
  // Of the epoch that goes on: phases may have several.
  const auto steps_then = static_cast<Index>(number("steps_of_epoch", number("steps_per_epoch", 0)));
  const Index steps_now = job_.timeline.steps(position.epoch);
  const bool local_then = meta.local_steps > 0, local_now = config_.sync.mode == SyncMode::weights;
  const bool exactly = meta.replicas == job_.replicas && steps_then == steps_now && local_then == local_now &&
                       position.step == job_.timeline.first_step(position.epoch) + position.step_in_epoch;
  set_all(loaded.set.block, exactly && local_now && !found.file.shards.empty() ? Replicas::follow : Replicas::alike);
  resume_average(loaded);
  if (exactly) {
    if (const std::string difference = what_differs(meta); !difference.empty()) {
      log::info("{} from that of '{}': training goes on, but not bit for bit", difference, path);
    }
    if (local_now) restore(loaded.shards);
  } else {
    position = same_fraction(position, steps_then, steps_now);
    position.step = job_.timeline.first_step(position.epoch) + position.step_in_epoch;
    log::info(
        "'{}' was written by {} replicas with {} steps an epoch and --sync {}; this job has {} replicas, {} steps and "
        "--sync {}: it goes on from the averaged model at step {} of epoch {}",
        path, meta.replicas, steps_then, local_then ? "weights" : "gradients", job_.replicas, steps_now,
        local_now ? "weights" : "gradients", position.step_in_epoch, position.epoch + 1);
  }
  from_last = std::filesystem::path(path).lexically_normal() ==
              (std::filesystem::path(config_.checkpoint.folder) / "last.h5").lexically_normal();
  const bool at_end = position.step >= job_.total_steps;
  log::info("resumed from '{}': {} {}, step {}", path, at_end ? "end of epoch" : "epoch",
            at_end ? position.epoch : position.epoch + 1, position.step);
  return position;
}

std::string Checkpointing::what_differs(const CheckpointMeta& meta) const {
  if (meta.configuration_hash != configuration_hash(config_)) {
    const auto then = meta.texts.find("configuration");
    const std::string options = then == meta.texts.end() ? "" : differing_options(then->second, config_);
    return options.empty() ? "the configuration differs" : fmt::format("the configuration ({}) differs", options);
  }
  const auto device = meta.texts.find("device");
  if (device != meta.texts.end() && device->second != engine_.backend().describe()) return "the device differs";
  return {};
}

void Checkpointing::restore(const std::vector<Shard>& shards) {
  std::vector<Index> since(static_cast<std::size_t>(job_.run.count), 0);
  run_agreed(communicator_, "loading the replicas", [&] {
    for (const Shard& shard : shards) {
      engine_.upload(sync_.set(shard.replica), shard.set.block, collectives_);
      since.at(static_cast<std::size_t>(shard.replica - job_.run.first)) = shard.samples_since_average;
    }
  });
  sync_.restore(since);
}

}  // namespace convoy
