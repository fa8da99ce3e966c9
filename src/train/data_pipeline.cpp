// SPDX-License-Identifier: Apache-2.0
#include "train/data_pipeline.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "data/dataset.hpp"
#include "data/image_maker.hpp"

namespace convoy {
namespace {

bool same_data(const DatasetInfo& a, const DatasetInfo& b) { return a.folder == b.folder && a.digest == b.digest; }

bool same_val(const TrainingPhase& a, const TrainingPhase& b) {
  return same_data(a.splits.val, b.splits.val) && a.val_groups.empty() == b.val_groups.empty();
}

/// Rank 0's part stands for all.
void warn_of_order(const TrainingPhase& phase, const Dataset& samples) {
  const Shuffle shuffle = phase.job.order.shuffle;
  const bool mixed = shuffle == Shuffle::global || (shuffle == Shuffle::partition && phase.job.replicas == 1);
  if (mixed || phase.job.rank != 0 || !is_sorted_by_class(samples)) return;
  log::warn(
      "the samples of '{}' stand in order of their classes, and --shuffle {} mixes them only in part, so training will be poor; prepare them with convoy-preprocess, which mixes them, or use --shuffle global",
      phase.splits.train.folder, shuffle == Shuffle::partition ? "partition" : "buffered");
}

Range train_range(const TrainingPhase& phase) {
  const JobShape& job = phase.job;
  return job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count) : Range{};
}

Range val_share(const TrainingPhase& phase) {
  return EvaluationBatches::share(phase.splits.val.samples, phase.job.ranks, phase.job.rank);
}

}  // namespace

HostBytes host_bytes(const std::vector<TrainingPhase>& phases, int node_size) {
  const Index memory = samples_memory(phases.front().config.data, node_size);
  HostBytes bytes;
  std::vector<bool> in_memory;  // training samples, one for each phase
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const TrainingPhase& phase = phases[i];
    const DatasetInfo& train = phase.splits.train;
    std::size_t owner = i;
    bool val = phase.splits.has_val;
    for (std::size_t j = 0; j < i; ++j) {
      if (same_data(train, phases[j].splits.train)) owner = j;
      val &= !(phases[j].splits.has_val && same_val(phase, phases[j]));
    }
    const Index own = owner == i ? kept_bytes(phase.config.data, train, train_range(phase), memory - bytes.samples) : 0;
    in_memory.push_back(owner == i ? own > 0 : in_memory[owner]);
    bytes.samples += own;
    if (val)
      bytes.samples += kept_evaluated_bytes(phase.splits.val_data, phase.splits.val, val_share(phase), phase.val_groups,
                                            memory - bytes.samples);
    if (phase.job.run.count == 0) continue;
    const bool resident = in_memory[i] && train.encoding == "raw" && !phase.augment.on_host();
    bytes.batches += Loader::memory_bytes(phase.job.order, phase.config.data.prefetch,
                                          resident ? 0 : SampleImages::image_bytes(train, phase.augment));
  }
  return bytes;
}

Index DataPipeline::skipped(Communicator& communicator) const {
  std::set<const Dataset*> all;
  for (const Samples& own : samples_) all.insert({own.train.get(), own.val.get()});
  std::array<std::int64_t, 1> count{0};
  for (const Dataset* samples : all) count[0] += samples != nullptr ? samples->skipped() : 0;
  communicator.sum(std::span<std::int64_t>(count), "samples that were skipped");
  return count[0];
}

DataPipeline::DataPipeline(const std::vector<TrainingPhase>& phases, const Communicator& communicator)
    : phases_(phases) {
  Index memory = samples_memory(phases.front().config.data, communicator.node_size());
  const auto take = [&](const std::shared_ptr<Dataset>& samples) {
    memory -= samples->memory_bytes();
    memory_bytes_ += samples->memory_bytes();
    return samples;
  };
  for (const TrainingPhase& phase : phases) {
    Samples own;
    for (std::size_t i = 0; i < samples_.size(); ++i) {  // phases on the same data share them
      if (same_data(phase.splits.train, phases[i].splits.train)) own.train = samples_[i].train;
      if (phase.splits.has_val && same_val(phase, phases[i])) own.val = samples_[i].val;
    }
    if (!own.train) own.train = take(load_split(phase.config.data, phase.splits.train, train_range(phase), memory));
    warn_of_order(phase, *own.train);
    if (phase.splits.has_val && !own.val)
      own.val =
          take(load_evaluated(phase.splits.val_data, phase.splits.val, val_share(phase), phase.val_groups, memory));
    samples_.push_back(std::move(own));
  }
}

void DataPipeline::attach(const DataPipelineSpec& spec) {
  Backend& backend = spec.engine.backend();
  sync_bn_ = spec.engine.plan().sync_bn;
  std::map<const Dataset*, int> kept;  // phases on the same samples share them on the device too
  const auto keep = [&](const Dataset& samples, const AugmentSpec& augment) {
    if (!can_be_resident(samples, augment)) return -1;
    const auto [place, fresh] = kept.emplace(&samples, -1);
    if (fresh) place->second = keep_resident(backend, samples, augment);
    return place->second;
  };
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const TrainingPhase& phase = phases_[i];
    const LoaderSpec loader{.order = phase.job.order,
                            .augment = phase.augment,
                            .first_replica = phase.job.run.first,
                            .replica_count = phase.job.run.count,
                            .workers = phase.config.data.workers,
                            .prefetch = phase.config.data.prefetch,
                            .resident = keep(*samples_[i].train, phase.augment),
                            .delay_seconds = spec.delay_seconds,
                            .memory = image_memory(backend)};
    loaders_.push_back(std::make_unique<Loader>(*samples_[i].train, loader));
    memory_bytes_ += Loader::memory_bytes(*samples_[i].train, loader);
    evaluators_.emplace_back();
    if (!phase.splits.has_val) continue;
    EvaluationSpec evaluation = phase.evaluation;
    evaluation.resident = keep(*samples_[i].val, evaluation.augment);
    evaluation.memory = image_memory(backend);
    evaluators_.back() = std::make_unique<Evaluator>(spec.engine, spec.collectives, spec.communicator, *samples_[i].val,
                                                     EvaluatorSpec{.batches = evaluation,
                                                                   .split_groups = phase.val_groups,
                                                                   .limit_batches = phase.config.data.limit_val_batches,
                                                                   .topk = phase.topk,
                                                                   .phase = i,
                                                                   .flip_test = phase.config.data.flip_test,
                                                                   .translate_test = phase.config.data.translate_test});
  }
}

void DataPipeline::begin_epoch(Index epoch, Index from_step) {
  const Timeline& timeline = phases_.front().job.timeline;
  const std::size_t phase = timeline.phase(epoch);
  const bool ahead = order_ahead_ != nullptr && phase == phase_ + 1 && from_step == 0;
  order_ = ahead ? order_ahead_ : &loaders_[phase]->begin_epoch(epoch, from_step);
  phase_ = phase;
  epoch_ = epoch;
  order_ahead_ = timeline.ends_phase(epoch) ? &loaders_[phase + 1]->begin_epoch(epoch + 1, 0) : nullptr;
}

ReplicaBatch DataPipeline::next(const Position& position, int replica) {
  const ActivityScope waiting(Activity::data);
  if (epoch_ != position.epoch) begin_epoch(position.epoch, position.step_in_epoch);
  const Index step = position.step_in_epoch, samples = replica < 0 ? 0 : order_->count(step, replica);
  ReplicaBatch batch{.replica = replica,
                     .key = {.phase = phase_, .samples = samples, .replica = replica},
                     .step_samples = order_->total(step),
                     .input = {}};
  if (samples == 0) return batch;
  batch.input = loaders_[phase_]->next(step, replica);
  batch.input.replica = replica;
  batch.input.norm_scale = 1.F / static_cast<float>(sync_bn_ ? batch.step_samples : samples);
  return batch;
}

Index DataPipeline::copy_images(const ReplicaBatch& batch, std::vector<std::uint8_t>& to) const {
  const Dataset& samples = *samples_[batch.key.phase].train;
  const Index bytes = SampleImages::image_bytes(samples, phases_[batch.key.phase].augment);
  const std::uint8_t* images = batch.input.images != nullptr ? batch.input.images : samples.images();
  to.resize(static_cast<std::size_t>(batch.key.samples * bytes));
  std::uint8_t* row = to.data();
  for (const SampleSpec& sample : batch.input.samples) row = std::copy_n(images + sample.sample * bytes, bytes, row);
  return bytes;
}

Evaluator* DataPipeline::evaluator(Index epoch) { return evaluators_[phases_.front().job.timeline.phase(epoch)].get(); }

}  // namespace convoy
