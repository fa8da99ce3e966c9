// SPDX-License-Identifier: Apache-2.0
#include "train/job.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/text.hpp"

namespace convoy {

Index used_samples(const DataConfig& config, Index samples) {
  return std::max<Index>(1, static_cast<Index>(std::llround(config.train_fraction * static_cast<double>(samples))));
}

SyncSpec policy_of(const SyncConfig& config) {
  return {.mode = config.mode,
          .local_steps = config.local_steps,
          .local_start = config.local_start,
          .momentum = config.momentum,
          .outer = config.outer,
          .group = config.group,
          .overlap = config.overlap,
          .reproducible = config.reproducible,
          .wire = config.wire.format};
}

ScheduleSpec schedule_of(const TrainConfig& config, double peak_rate) {
  ScheduleSpec spec = config.optimiser.schedule;
  spec.rate = peak_rate;
  spec.epochs = config.epochs;
  for (const auto& phase : config.phases) {
    if (phase.has_rate) spec.phases.push_back(phase.rate);
  }
  return spec;
}

namespace {

/// One replica has nothing to send.
CompressionSpec compression(const SyncConfig& config, int replicas) {
  CompressionSpec spec = config.compression;
  if (replicas > 1) spec.kind = config.wire.compression;
  return spec;
}

}  // namespace

JobShape plan_job(const TrainConfig& config, Index train_samples, int ranks, int rank, int replicas,
                  std::shared_ptr<const ClassLists> classes) {
  JobShape job;
  job.ranks = ranks;
  job.rank = rank;
  job.replicas = replicas > 0 ? replicas : ranks * config.sync.grad_accum_steps;
  job.run = deal_replicas(job.replicas, ranks, rank);
  job.turns = deal_replicas(job.replicas, ranks, 0).count;
  Index batch = config.batch;
  if (config.global_batch > 0) {
    const Index whole = batch * job.replicas;
    if (config.batch_given && whole != config.global_batch) {
      fail(
          Exit::usage,
          "--batch-size {} on {} replicas makes {} images per step, but --global-batch is {}; give one of them, or make them agree",
          batch, job.replicas, whole, config.global_batch);
    }
    if (config.global_batch % job.replicas != 0) {
      fail(Exit::usage, "--global-batch {} can't be dealt evenly to {} replicas; choose a multiple",
           config.global_batch, job.replicas);
    }
    batch = config.global_batch / job.replicas;
  }
  job.sync = policy_of(config.sync);
  if (job.replicas == 1) job.sync.wire = Wire::fp32;  // it has nothing to average, on any number of ranks
  job.sync.compression = compression(config.sync, job.replicas);
  job.sync.replicas = job.replicas;
  job.sync.ranks = ranks;
  job.sync.rank = rank;
  // A dry run knows no hosts, so it takes all replicas as one host's.
  if (job.sync.group.is_on() && job.sync.group.replicas == 0) job.sync.group.replicas = job.replicas;
  check(job.sync, config.sync.sync_bn ? BatchNormSamples::of_all : BatchNormSamples::of_replica);
  const Index samples = classes ? classes->classes() * classes->draws() : used_samples(config.data, train_samples);
  if (samples < job.replicas) {
    fail(Exit::usage,
         "{} share {}: some would never see one; start fewer ranks, or lower --replicas or --grad-accum-steps",
         counted(job.replicas, "replica"), counted(samples, "training image"));
  }
  job.order = {.samples = samples,
               .replicas = job.replicas,
               .batch = batch,
               .seed = config.seed,
               .shuffle = config.data.shuffle,
               .mode = config.data.epoch_mode,
               .buffer = config.data.shuffle_buffer,
               .shuffled = true,
               .classes = std::move(classes),
               .repeats = config.data.repeats};
  job.global_batch = batch * job.replicas;
  if (job.order.mode == EpochMode::exact) job.global_batch = std::min(job.global_batch, samples);
  job.steps_per_epoch = steps_of_epoch(job.order);
  if (config.data.limit_train_batches > 0) {
    job.steps_per_epoch = std::min(job.steps_per_epoch, config.data.limit_train_batches);
  }
  job.peak_rate =
      scaled_rate(config.optimiser.rate, config.optimiser.scaling, job.global_batch, config.optimiser.base_batch);
  job.timeline = Timeline({{.begin_epoch = 0, .steps_per_epoch = job.steps_per_epoch}});
  constexpr double most_steps = 9007199254740992.0;  // 2^53: a double counts no further
  if (config.epochs * static_cast<double>(job.steps_per_epoch) > most_steps)
    fail(Exit::usage, "--epochs {} of {} are more steps than can be counted (2^53); give fewer epochs", config.epochs,
         counted(job.steps_per_epoch, "step"));
  job.total_steps = job.timeline.step(config.epochs);
  return job;
}

int replicas_of_host(const std::vector<std::string>& host_of_rank, int replicas) {
  const int ranks = static_cast<int>(host_of_rank.size());
  std::vector<int> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (rank == 0 || host_of_rank[r] != host_of_rank[r - 1]) counts.push_back(0);
    counts.back() += deal_replicas(replicas, ranks, rank).count;
  }
  const auto hosts = std::set<std::string>(host_of_rank.begin(), host_of_rank.end()).size();
  const bool alike = std::all_of(counts.begin(), counts.end(), [&](int count) { return count == counts.front(); });
  return alike && hosts == counts.size() ? counts.front() : 0;
}

double highest_rate(const TrainConfig& config, const JobShape& job) {
  if (config.optimiser.schedule.decay != Decay::phases) return job.peak_rate;
  double highest = 0;
  for (const PhaseConfig& phase : config.phases) highest = std::max({highest, phase.rate.from, phase.rate.to});
  return highest;
}

std::string describe(const JobShape& job, const TrainConfig& config) {
  const OptimiserConfig& optimiser = config.optimiser;
  const std::string scaled =
      optimiser.scaling == Scaling::none
          ? std::string()
          : fmt::format(" ({} for {} images, {} in the batch)", optimiser.rate, optimiser.base_batch,
                        optimiser.scaling == Scaling::linear ? "linear" : "a square root");
  const double warmup = optimiser.schedule.warmup_epochs;
  std::string average;
  if (config.ema.decay > 0)
    average = fmt::format("; moving average of the weights every {}, decay {}", counted(config.ema.steps, "step"),
                          config.ema.decay);
  if (config.lookahead.steps > 0)
    average =
        fmt::format("; lookahead every {}, alpha {}", counted(config.lookahead.steps, "step"), config.lookahead.alpha);
  const std::string rate =
      config.optimiser.schedule.decay == Decay::phases
          ? fmt::format("optimizer {}, learning rates of the phases, up to {}", info_of(optimiser.rule).name,
                        highest_rate(config, job))
          : fmt::format("optimizer {}, peak learning rate {:.6g}{}{}", info_of(optimiser.rule).name, job.peak_rate,
                        scaled, warmup > 0 ? fmt::format(", warm-up {}", counted(warmup, "epoch")) : std::string());
  return fmt::format("{}, {}, batch {} per replica, global batch {}; sync {}{}; {}; {} per epoch, {} in total",
                     counted(job.ranks, "rank"), counted(job.replicas, "replica"), job.order.batch, job.global_batch,
                     describe(job.sync), average, rate, counted(job.steps_per_epoch, "step"), job.total_steps);
}

}  // namespace convoy
