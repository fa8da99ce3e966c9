// SPDX-License-Identifier: Apache-2.0
#include "train/feeds.hpp"

#include <algorithm>
#include <map>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "data/class_order.hpp"

namespace convoy {
namespace {

bool same_data(const DatasetInfo& a, const DatasetInfo& b) { return a.folder == b.folder && a.digest == b.digest; }

bool same_val(const Leg& a, const Leg& b) {
  return same_data(a.splits.val, b.splits.val) && a.val_groups.empty() == b.val_groups.empty();
}

/// Rank 0's part stands for all.
void warn_of_order(const Leg& leg, const Dataset& samples) {
  const DataConfig& data = leg.config.data;
  const bool mixed = data.shuffle == Shuffle::global || (data.shuffle == Shuffle::partition && leg.job.replicas == 1);
  if (mixed || leg.job.rank != 0 || !is_sorted_by_class(samples)) return;
  log::warn(
      "the samples of '{}' stand in order of their classes, and --shuffle {} mixes them only in part, so training will "
      "be poor; prepare them with convoy-preprocess, which mixes them, or use --shuffle global",
      leg.splits.train.folder, data.shuffle == Shuffle::partition ? "partition" : "buffered");
}

Range train_range(const Leg& leg) {
  const Job& job = leg.job;
  return job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count) : Range{};
}

}  // namespace

Feeds::Feeds(const std::vector<Leg>& legs, const Communicator& communicator) : legs_(legs) {
  Index memory = samples_memory(legs.front().config.data, communicator.node_size());
  const auto take = [&](const std::shared_ptr<Dataset>& samples) {
    memory -= samples->memory_bytes();
    memory_bytes_ += samples->memory_bytes();
    return samples;
  };
  for (const Leg& leg : legs) {
    Samples own;
    for (std::size_t i = 0; i < samples_.size(); ++i) {  // legs on the same data share them
      if (same_data(leg.splits.train, legs[i].splits.train)) own.train = samples_[i].train;
      if (leg.splits.has_val && same_val(leg, legs[i])) own.val = samples_[i].val;
    }
    if (!own.train) own.train = take(load_split(leg.config.data, leg.splits.train, train_range(leg), memory));
    warn_of_order(leg, *own.train);
    if (leg.splits.has_val && !own.val) {
      const Range share = EvaluationBatches::share(leg.splits.val.samples, leg.job.ranks, leg.job.rank);
      own.val = take(load_evaluated(leg.config.data, leg.splits.val, share, leg.val_groups, memory));
    }
    samples_.push_back(std::move(own));
  }
}

void Feeds::attach(const FeedsSpec& spec) {
  Backend& backend = spec.engine.backend();
  std::map<const Dataset*, int> kept;  // legs on the same samples share them on the device too
  const auto keep = [&](const Dataset& samples, const AugmentSpec& augment) {
    if (!can_be_resident(samples, augment)) return -1;
    const auto [place, fresh] = kept.emplace(&samples, -1);
    if (fresh) place->second = keep_resident(backend, samples, augment);
    return place->second;
  };
  for (std::size_t i = 0; i < legs_.size(); ++i) {
    const Leg& leg = legs_[i];
    const LoaderSpec loader{.order = leg.job.order,
                            .augment = leg.augment,
                            .first_replica = leg.job.run.first,
                            .replica_count = leg.job.run.count,
                            .workers = leg.config.data.workers,
                            .prefetch = leg.config.data.prefetch,
                            .resident = keep(*samples_[i].train, leg.augment),
                            .delay_seconds = spec.delay_seconds,
                            .memory = image_memory(backend)};
    loaders_.push_back(std::make_unique<Loader>(*samples_[i].train, loader));
    memory_bytes_ += Loader::memory_bytes(*samples_[i].train, loader);
    evaluators_.emplace_back();
    if (!leg.splits.has_val) continue;
    EvaluationSpec evaluation = leg.evaluation;
    evaluation.resident = keep(*samples_[i].val, evaluation.augment);
    evaluation.memory = image_memory(backend);
    evaluators_.back() = std::make_unique<Evaluator>(spec.engine, spec.collectives, spec.communicator, *samples_[i].val,
                                                     EvaluatorSpec{.batches = evaluation,
                                                                   .split_groups = leg.val_groups,
                                                                   .limit_batches = leg.config.data.limit_val_batches,
                                                                   .topk = leg.topk,
                                                                   .form = i,
                                                                   .flip_test = leg.config.data.flip_test});
  }
}

const EpochOrder& Feeds::begin_epoch(Index epoch, Index from_step) {
  const Timeline& timeline = legs_.front().job.timeline;
  const std::size_t leg = timeline.stretch(epoch);
  const bool ahead = order_ahead_ != nullptr && leg == leg_ + 1 && from_step == 0;
  const EpochOrder* order = ahead ? order_ahead_ : &loaders_[leg]->begin_epoch(epoch, from_step);
  leg_ = leg;
  order_ahead_ = timeline.ends_stretch(epoch) ? &loaders_[leg + 1]->begin_epoch(epoch + 1, 0) : nullptr;
  return *order;
}

Evaluator* Feeds::evaluator(Index epoch) { return evaluators_[legs_.front().job.timeline.stretch(epoch)].get(); }

}  // namespace convoy
