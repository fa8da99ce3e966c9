// SPDX-License-Identifier: Apache-2.0
#include "train/continuation.hpp"

#include <algorithm>
#include <filesystem>

#include "checkpoint/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/hash.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "config/rate_choice.hpp"
#include "core/log.hpp"
#include "train/training_job.hpp"

namespace convoy {
namespace {

/// Whether the data are those that the checkpoint's run was trained on.
void judge_data(const TrainingJob& job, FoundCheckpoint& found) {
  const CheckpointMeta& meta = found.file.meta;
  const TrainingPhase* phase = &job.phases.front();
  for (const TrainingPhase& other : job.phases)
    if (other.begin_epoch <= meta.position.data_epoch()) phase = &other;
  const TrainedData own = data_of(*phase);
  const DataVerdict verdict =
      judge({meta.data, fmt::format("'{}'", found.path)}, {own, fmt::format("'{}'", phase->splits.train.folder)},
            meta.position.step_in_epoch > 0 ? DataUse::mid_epoch : DataUse::epoch_border);
  if (job.communicator.rank() == 0) tell(verdict);
  found.other_val = verdict.new_best;
}

/// A resumed run keeps its learning rate unless --lr gives one.
void keep_rates(TrainingJob& job, const CheckpointMeta& meta) {
  const auto stored = meta.texts.find("configuration");
  if (stored != meta.texts.end() && keep_rate(job.config, stored->second)) {
    for (TrainingPhase& phase : job.phases) keep_rate(phase.config, stored->second);
  } else if (job.communicator.rank() == 0 && job.config.said.count("lr") == 0) {
    log::warn(
        "the checkpoint's configuration can't be read, so the learning rate is this version's default; give --lr");
  }
}

/// Collective. A resumed run keeps its groups unless --node-replicas gives others, wherever its ranks are now.
void settle_groups(TrainingJob& job, const std::optional<FoundCheckpoint>& found) {
  SyncConfig& sync = job.config.sync;
  if (!sync.group.is_on()) return;
  const std::map<std::string, std::string> none;
  const auto& texts = found ? found->file.meta.texts : none;
  const auto stored = texts.find("configuration");
  if (stored != texts.end() && job.config.said.count("node-replicas") == 0) {
    try {
      const int then = parse_ini(stored->second).sync.group.replicas;
      if (then > 0) sync.group.replicas = then;
    } catch (const Error&) {  // of another version, which wrote options that this one lacks
    }
  }
  run_alike(job.communicator, [&] {
    if (sync.group.replicas == 0)
      fail(
          Exit::usage,
          "--node-steps needs hosts with equally many replicas, whose ranks are numbered one host after the other; give "
          "--node-replicas, or start the ranks so");
  });
  for (TrainingPhase& phase : job.phases) phase.config.sync.group.replicas = sync.group.replicas;
}

/// Has the run of the checkpoint come to its end, with this configuration and these data?
bool is_end_of(const TrainConfig& config, std::uint64_t train_digest, const CheckpointMeta& meta) {
  const auto number = meta.numbers.find("steps_of_epoch");
  const double steps = number == meta.numbers.end() ? 1 : std::max(number->second, 1.0);
  const Position& at = meta.position;
  const double epochs = static_cast<double>(at.epoch) + static_cast<double>(at.step_in_epoch) / steps;
  const auto text = meta.texts.find("configuration");
  return epochs + 0.5 / steps > config.epochs && text != meta.texts.end() && text->second == to_ini(config) &&
         meta.data.train_digest == train_digest;
}

/// Collective. If the same run was started twice at once, the second start has waited for the first. Returns the last
/// checkpoint of the first, if the first has done all that this start asks for; else nothing.
std::optional<FoundCheckpoint> end_of_equal_start(const TrainingJob& job) {
  const CheckpointConfig& config = job.config.checkpoint;
  const std::string last = main_path(config.folder, "last");
  std::error_code unknown;
  if (ask_first_rank(job.communicator, "looking for what an equal start made", [&] {
        return std::string(std::filesystem::exists(last, unknown) ? "there" : "");
      }).empty())
    return std::nullopt;
  FoundCheckpoint found = open_checkpoint(job.communicator, last);
  const CheckpointMeta& meta = found.file.meta;
  if (meta.attempt != job.attempt.waited_for || !is_end_of(job.config, data_of(job.phases.back()).train_digest, meta))
    return std::nullopt;
  log::info(
      "attempt {} has finished this run with the same configuration while this one waited for it, so there is nothing to "
      "train; start again to train anew",
      meta.attempt);
  return found;
}

}  // namespace

std::optional<FoundCheckpoint> find_resume(TrainingJob& job) {
  const CheckpointConfig& config = job.config.checkpoint;
  std::optional<FoundCheckpoint> found;
  run_alike(job.communicator, [&] {
    found = config.resume.empty() && job.attempt.waited_for > 0
                ? end_of_equal_start(job)
                : checkpoint_to_resume(job.communicator, config, job.attempt, job.graph.model);
  });
  std::string digests;
  for (const TrainingPhase& phase : job.phases)
    digests += fmt::format("train {:016x}, val {:016x}; ", phase.splits.train.digest, phase.splits.val.digest);
  job.communicator.require_equal(digests, "data sets");
  run_alike(job.communicator, [&] {
    if (found) judge_data(job, *found);
  });
  run_alike(job.communicator, [&] {
    if (found) require_same_frozen(job.config, found->file.meta);
  });
  if (found) keep_rates(job, found->file.meta);
  settle_groups(job, found);
  settle_run(job.communicator, job.attempt, found ? found->file.meta.run : std::string());
  return found;
}

std::string choices_for(const TrainConfig& config, const JobShape& job, const CheckpointMeta& meta) {
  const auto choices = meta.texts.find("choices");
  const auto batch = meta.numbers.find("batch");
  if (choices == meta.texts.end() || batch == meta.numbers.end()) return {};
  const bool same = meta.configuration_hash == configuration_hash(config) && meta.replicas == job.replicas &&
                    batch->second == static_cast<double>(job.order.batch);
  return same ? choices->second : std::string();
}

}  // namespace convoy
