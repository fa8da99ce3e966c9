// SPDX-License-Identifier: Apache-2.0
#include "train/continuation.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "comm/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/hash.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "config/rate_choice.hpp"
#include "core/log.hpp"
#include "run/run_state.hpp"
#include "train/setup.hpp"
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

/// Collective. A resumed run keeps its learning rate unless --lr gives one, and its batch norms unless --norm-epsilon
/// or --norm-momentum gives others.
void keep_what_it_began_with(TrainingJob& job, const CheckpointMeta& meta) {
  const auto stored = meta.texts.find("configuration");
  if (stored != meta.texts.end() && keep_unsaid(job.config, stored->second)) {
    for (TrainingPhase& phase : job.phases) keep_unsaid(phase.config, stored->second);
    run_alike(job.communicator, [&] { job.graph = build_network(job.phases); });
    const float kept = norms_of(job.config.model).epsilon, usual = usual_norms(job.config.model.model).epsilon;
    const bool said = job.config.said.count("norm-epsilon") > 0 || !job.config.model.layers.empty();
    if (job.communicator.rank() == 0 && !said && kept != usual)
      log::info("the batch norms keep the epsilon of {} that the run began with ({} begins with {} now)", kept,
                job.config.model.model, usual);
  } else if (job.communicator.rank() == 0) {
    log::warn(
        "the checkpoint's configuration can't be read, so what was not given (--lr, --norm-epsilon, --norm-momentum, "
        "--outer-lr, --outer-momentum) has this version's defaults; give what the run began with");
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

/// What an earlier run left though nothing of it can be continued; empty: nothing.
std::string traces_of_run(const CheckpointConfig& config, const std::string& run_folder) {
  std::vector<std::string> traces;
  std::vector<std::string> damaged = list_abandoned(config.folder, nullptr);
  std::erase_if(damaged, [](const std::string& file) { return !file.ends_with(".damaged"); });
  if (!damaged.empty())
    traces.push_back(fmt::format("{} {} damaged", fmt::join(damaged, ", "), damaged.size() == 1 ? "is" : "are"));
  if (const auto aside = list_put_aside(config.folder); !aside.empty())
    traces.push_back(fmt::format("checkpoints of an earlier run lie in {}", fmt::join(aside, ", ")));
  if (!traces.empty()) return fmt::format("{}", fmt::join(traces, "; "));
  if (const auto state = find_run_state(run_folder); state && state->checkpoint_step > 0)
    return fmt::format("{}/state.json knows '{}' of step {}", run_folder, state->checkpoint, state->checkpoint_step);
  return {};
}

/// On rank 0. Does the line stand at the checkpoint from which its newest attempt went on, and not at the newest of the
/// folder?
bool stands_at_beginning(const std::string& began, const Lineage& line, const FoundCheckpoint& found) {
  const AttemptRecord& newest = line.newest();
  std::error_code unknown;
  const Index attempt = line.known(found.file.meta.attempt), step = found.file.meta.position.step;
  // What that attempt saved lies behind the beginning, and everything older leads to it.
  const bool same = attempt == newest.from_attempt && step == newest.from_step;
  if (attempt >= newest.number || same || std::filesystem::equivalent(began, found.path, unknown)) return false;
  std::string trouble = "it is gone";
  try {
    if (std::filesystem::exists(began, unknown)) trouble = find_damage(began);
    if (trouble.empty()) {
      const Index now = read_main_meta(began).meta.position.step;
      if (now == newest.from_step) return true;
      trouble = fmt::format("it is of step {} now, and was of step {}", now, newest.from_step);
    }
  } catch (const Error& e) {
    trouble = e.what();
  }
  log::warn("attempt {} continued '{}', which can't be taken ({}): going back to '{}' of step {}", newest.number, began,
            trouble, found.path, step);
  return false;
}

/// Collective. The checkpoint to continue from, as --resume says; nothing: start afresh. With auto it is the newest of
/// the line that the newest attempt went on from; one of another network than `model`, or of a run that no attempt here
/// belonged to, is not taken, and traces of a run without a checkpoint to take are refused, unless --restart is given.
/// Throws the same on all ranks.
std::optional<FoundCheckpoint> checkpoint_to_resume(Communicator& communicator, const CheckpointConfig& config,
                                                    const Attempt& attempt, const std::string& model) {
  if (config.resume.empty()) return std::nullopt;
  if (config.resume != "auto") return open_to_resume(communicator, config.resume);
  const auto why_foreign = [&](const FileMeta& file) {
    if (file.model != model) return fmt::format("it is of {}, this run trains {}", file.model, model);
    const bool known = std::any_of(attempt.folders.begin(), attempt.folders.end(),
                                   [&](const std::string& folder) { return knows_run(folder, file.meta.run); });
    // A folder that was copied without its attempts is taken as it is.
    const bool nobody = newest_attempt(attempt.folders.back(), attempt.record.number).number == 0;
    return known || nobody ? std::string() : fmt::format("it is of run '{}'", file.meta.run);
  };
  Lineage line;
  const std::string began = ask_first_rank(communicator, "looking for the newest attempt", [&] {
    line = Lineage(attempt.folders.back(), attempt.record.number);
    return line.newest().from;
  });
  auto found = find_checkpoint(communicator, config.folder, why_foreign, line);
  // The newest attempt may have saved nothing since it went on from a checkpoint that lies elsewhere.
  const std::string from = ask_first_rank(communicator, "looking for the end of the line", [&] {
    std::error_code unknown;
    const bool taken =
        !began.empty() && (found ? stands_at_beginning(began, line, *found) : std::filesystem::exists(began, unknown));
    if (!taken) return std::string();
    const std::string& folder = attempt.folders.front();
    if (const std::string original = original_of(folder, line.newest()); !original.empty())
      log::warn("'{}' is a copy of '{}': this run goes on from the original's checkpoint '{}'", folder, original,
                began);
    return std::string(began);
  });
  if (!from.empty()) return open_checkpoint(communicator, from);
  if (found) return found;
  const std::string traces = ask_first_rank(communicator, "looking for traces of a run",
                                            [&] { return traces_of_run(config, attempt.folders.front()); });
  if (!traces.empty() && !config.restart)
    fail(
        Exit::usage,
        "'{}' holds no checkpoint to continue from, but {}; move one there, name one with --resume PATH, or give --restart to begin at epoch 1",
        config.folder, traces);
  log::info("no checkpoint in '{}': starting afresh", config.folder);
  return std::nullopt;
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
  if (found) keep_what_it_began_with(job, found->file.meta);
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
