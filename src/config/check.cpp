// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/parse.hpp"
#include "core/errors.hpp"

namespace convoy {
namespace {

void check_schedule(const TrainConfig& config) {
  const auto& schedule = config.optimiser.schedule;
  const bool phases = schedule.decay == Decay::phases;
  const auto rates = std::count_if(config.phases.begin(), config.phases.end(), [](auto& p) { return p.has_rate; });
  if (rates > 0 && rates < static_cast<Index>(config.phases.size())) {
    fail(Exit::usage,
         "some phases have 'lr' and others don't; give it in all of them, or in none beside --lr-schedule");
  }
  if (phases && rates == 0) {
    fail(Exit::usage,
         "--lr-schedule phases has no phases; write [phase.1], [phase.2], ... into the configuration file");
  }
  if (!phases && rates > 0) {
    fail(Exit::usage, "the configuration has [phase.{}] and another --lr-schedule; keep one of them",
         config.phases.front().number);
  }
  // The peak is not known before the number of ranks is; any rate shows what else is wrong.
  ScheduleSpec spec = schedule;
  spec.rate = config.optimiser.rate;
  spec.epochs = config.epochs;
  for (const auto& phase : config.phases) {
    if (phase.has_rate) spec.phases.push_back(phase.rate);
  }
  Schedule(spec, 1);
}

/// Phases without rates are in order too, and those that change data begin with epochs.
void check_phases(const TrainConfig& config) {
  double end = 0;
  for (const PhaseConfig& phase : config.phases) {
    if (!(phase.rate.begin_epoch >= end) || !(phase.rate.end_epoch > phase.rate.begin_epoch)) {
      fail(Exit::usage, "[phase.{}] lasts from epoch {} to {}; phases must be in order, not empty and must not overlap",
           phase.number, phase.rate.begin_epoch, phase.rate.end_epoch);
    }
    if (phase.batch > 0 && phase.global_batch > 0) {
      fail(Exit::usage, "[phase.{}] has batch-size {} and global-batch {}; keep one", phase.number, phase.batch,
           phase.global_batch);
    }
    end = phase.rate.end_epoch;
  }
  data_phases(config);
}

void check_sync(const TrainConfig& config) {
  const auto& sync = config.sync;
  if (sync.sync_bn && sync.mode != SyncMode::gradients) {
    fail(Exit::usage,
         "--sync-bn needs --sync gradients (replicas that average weights go their own ways between averages)");
  }
  if (sync.sync_bn && sync.grad_accum_steps > 1) {
    fail(Exit::usage, "--sync-bn needs one replica per rank and --grad-accum-steps {} makes {}; use more ranks",
         sync.grad_accum_steps, sync.grad_accum_steps);
  }
  if (sync.mode == SyncMode::gradients && sync.local_steps > 1) {
    fail(Exit::usage, "--local-steps {} needs --sync weights (gradients are averaged every step)", sync.local_steps);
  }
  if (sync.outer.is_on() && sync.local_steps == 1) {
    fail(
        Exit::usage,
        "--outer-optimizer {} needs --local-steps above 1 (a momentum of single steps is what --optimizer has); give --local-steps N, or drop it",
        sync.outer.rule == OuterRule::momentum ? "momentum" : "nesterov");
  }
  // One replica would send nothing, but then a trial on one rank would hide what is wrong.
  check_compression(sync.wire.compression, sync.mode,
                    config.device.device == "cuda" ? GradientMemory::device : GradientMemory::host);
  if (!sync.wire.is_plain() && sync.cuda_aware && sync.backend != "nccl") {
    fail(
        Exit::usage,
        "--wire {} is not possible with --cuda-aware (MPI then all-reduces in fp32); drop one of them, or give --backend nccl",
        name_of(sync.wire));
  }
  if (sync.replicas > 0 && sync.grad_accum_steps > 1) {
    fail(Exit::usage, "--replicas {} and --grad-accum-steps {} both set the number of replicas; give one",
         sync.replicas, sync.grad_accum_steps);
  }
  if (config.batch_given && config.global_batch > 0) {
    const Index replicas = sync.replicas;
    const bool fits =
        replicas > 0 ? config.global_batch == replicas * config.batch : config.global_batch % config.batch == 0;
    if (!fits) {
      fail(Exit::usage, "--batch-size {} and --global-batch {} don't fit ({}); give one of them", config.batch,
           config.global_batch,
           replicas > 0 ? fmt::format("{} replicas take {}", replicas, replicas * config.batch)
                        : "no number of replicas makes one from the other");
    }
  }
}

void check_spikes(const TrainConfig& config) {
  if (config.on_spike == OnSpike::rollback && !config.checkpoint.save)
    fail(Exit::usage,
         "--on-spike rollback needs checkpoints to go back to; drop --no-checkpoints, or give --on-spike warn");
}

void check_ema(const TrainConfig& config) {
  const EmaConfig& ema = config.ema;
  if (ema.decay == 0) return;
  if (static_cast<float>(ema.decay) == 1) {
    fail(Exit::usage, "--ema-decay {} is 1 in fp32, so the average would stay as it is; give 0.9999999 or less",
         ema.decay);
  }
  const SyncConfig& sync = config.sync;
  if (sync.mode == SyncMode::weights && ema.steps % sync.local_steps != 0) {
    fail(
        Exit::usage,
        "--ema-steps {} is no multiple of --local-steps {} (between two averages of the weights replicas differ); give --ema-steps {}",
        ema.steps, sync.local_steps, (ema.steps / sync.local_steps + 1) * sync.local_steps);
  }
}

void check_lookahead(const TrainConfig& config) {
  const Index steps = config.lookahead.steps;
  if (steps == 0) return;
  if (config.ema.decay > 0) {
    fail(Exit::usage,
         "--lookahead-steps {} and --ema-decay {} both keep an average of the weights for evaluation; drop one", steps,
         config.ema.decay);
  }
  const SyncConfig& sync = config.sync;
  if (sync.outer.is_on()) {
    fail(Exit::usage,
         "--lookahead-steps {} and --outer-optimizer both change the averaged weights between steps; drop one", steps);
  }
  if (sync.mode == SyncMode::weights && sync.overlap) {
    fail(
        Exit::usage,
        "--lookahead-steps {} and --overlap-average don't go together (the replicas never hold the same weights); drop one",
        steps);
  }
  if (sync.mode == SyncMode::weights && steps % sync.local_steps != 0) {
    fail(
        Exit::usage,
        "--lookahead-steps {} is no multiple of --local-steps {} (between two averages of the weights replicas differ); give --lookahead-steps {}",
        steps, sync.local_steps, (steps / sync.local_steps + 1) * sync.local_steps);
  }
}

void check_data(const TrainConfig& config) {
  const auto& data = config.data;
  if (!data.synthetic && data.folder.empty() && data.train_folder.empty()) {
    fail(Exit::usage, "no data set is given; use --data DIR (made by convoy-preprocess) or --synthetic");
  }
  if (data.synthetic && (!data.folder.empty() || !data.train_folder.empty() || !data.val_folder.empty())) {
    fail(Exit::usage, "--synthetic and a data folder are both given; keep one");
  }
  if (data.balance == Balance::classes) {
    if (data.shuffle != Shuffle::global)
      fail(Exit::usage,
           "--balance classes needs --shuffle global (each replica draws from all samples of a class); give that, or "
           "drop --shuffle");
    if (data.epoch_mode == EpochMode::resample)
      fail(Exit::usage, "--balance classes and --epoch-mode resample both say what an epoch draws; drop one of them");
    if (data.repeats > 1)
      fail(
          Exit::usage,
          "--balance classes with --repeated-augmentation {} would not show each class equally often; drop one of them",
          data.repeats);
  }
  const auto channels = data.rgb_mean.size(), deviations = data.rgb_std.size();
  if (channels != 0 && deviations != 0 && channels != deviations) {
    fail(Exit::usage, "--rgb-mean has {} values and --rgb-std {}; give one per channel in both", channels, deviations);
  }
}

}  // namespace

void check_averages(const TrainConfig& config) {
  check_sync(config);
  check_ema(config);
  check_lookahead(config);
}

void check(const TrainConfig& config) {
  check_data(config);
  // Throws for an unknown network or variant. The data fill in classes and sizes later: until then no image is too
  // small for the layers of a file.
  constexpr Index large_image = 4096;
  GraphSpec model = config.model;
  if (!model.layers.empty()) model.image_size = large_image;
  if (config.data.image_size > 0) model.image_size = config.data.image_size;
  build_graph(model);
  check_schedule(config);
  check_averages(config);
  check_spikes(config);
  if (config.optimiser.loss_scale > 0 && config.device.precision != Precision::fp16) {
    fail(Exit::usage, "--loss-scale {} needs --precision fp16 (the others hold small gradients without it)",
         config.optimiser.loss_scale);
  }
  check_phases(config);
  if (config.start_epoch >= config.epochs) {
    fail(Exit::usage, "--start-epoch {} is not before the end (--epochs {})", config.start_epoch, config.epochs);
  }
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (!checkpoint.resume.empty() && checkpoint.resume != "auto" && !checkpoint.weights.empty()) {
    fail(
        Exit::usage,
        "--resume {} and --weights {} are both given; --resume continues a run, --weights starts a new one (beside --resume auto they count if there is nothing to resume)",
        checkpoint.resume, checkpoint.weights);
  }
  if (config.target_accuracy > 0 && config.skip_eval) {
    fail(Exit::usage, "--target-accuracy {} can't be reached with --skip-eval; drop one", config.target_accuracy);
  }
  if (config.skip_eval && config.patience > 0) {
    fail(Exit::usage, "--patience {} counts validations, and --skip-eval leaves them out; drop one", config.patience);
  }
  if (config.skip_eval && config.optimiser.schedule.decay == Decay::plateau) {
    fail(Exit::usage, "--lr-schedule plateau follows the validations, and --skip-eval leaves them out; drop one");
  }
  const auto& deadline = config.sync.deadline;
  if (deadline.abort_seconds > 0 && deadline.warn_seconds > deadline.abort_seconds) {
    fail(Exit::usage, "--stall-warning-seconds {} comes after --stall-abort-seconds {}; warn earlier, or 0 for never",
         deadline.warn_seconds, deadline.abort_seconds);
  }
}

std::vector<std::string> implausible(const TrainConfig& config) {
  std::vector<std::string> texts;
  const auto& optimiser = config.optimiser;
  const auto& schedule = optimiser.schedule;
  const RuleInfo rule = info_of(optimiser.rule);
  if (optimiser.weight_decay > rule.recipes.decay) {
    texts.push_back(fmt::format("--weight-decay {} is large for {} (recipes use {})", optimiser.weight_decay,
                                rule.title, rule.recipes.decays));
  }
  if (optimiser.rate > rule.recipes.learning_rate) {
    texts.push_back(fmt::format("--lr {} is large for {} (recipes use {})", optimiser.rate, rule.title,
                                rule.recipes.learning_rates));
  }
  if (schedule.decay == Decay::multistep && schedule.step_epochs.back() >= config.epochs) {
    texts.push_back(
        fmt::format("--lr-step-epochs {} is past the end (--epochs {})", schedule.step_epochs.back(), config.epochs));
  }
  for (const PhaseConfig& phase : config.phases) {
    if (phase.rate.begin_epoch >= config.epochs) {
      texts.push_back(fmt::format("[phase.{}] begins at epoch {}, past the end (--epochs {})", phase.number,
                                  phase.rate.begin_epoch, config.epochs));
    }
  }
  if (schedule.decay == Decay::phases && optimiser.scaling != Scaling::none) {
    texts.push_back("--lr-scaling doesn't scale the learning rates of [phase.N]: they are taken as they stand");
  }
  if (config.model.label_smoothing > 0.5F) {
    texts.push_back(fmt::format("--label-smoothing {} leaves less than half of the target on the label",
                                config.model.label_smoothing));
  }
  if (!config.frozen.empty() && config.checkpoint.weights.empty() && config.checkpoint.resume.empty())
    texts.push_back("--freeze without --weights keeps layers at their random first values");
  if (!config.checkpoint.save && !config.checkpoint.resume.empty()) {
    texts.push_back("--resume with --no-checkpoints: a stop loses what this job trains");
  }
  return texts;
}

}  // namespace convoy
