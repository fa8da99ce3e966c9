// SPDX-License-Identifier: Apache-2.0
#include "train/feeds.hpp"

#include <algorithm>
#include <map>

#include "core/errors.hpp"

namespace convoy {
namespace {

bool same_data(const Leg& a, const Leg& b) {
  const auto same = [](const DatasetInfo& x, const DatasetInfo& y) {
    return x.folder == y.folder && x.digest == y.digest;
  };
  return same(a.splits.train, b.splits.train) && (!a.splits.has_val || same(a.splits.val, b.splits.val));
}

Range train_range(const Leg& leg) {
  const Job& job = leg.job;
  return job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count) : Range{};
}

}  // namespace

Feeds::Feeds(const std::vector<Leg>& legs, const Communicator& communicator) : legs_(legs) {
  Index memory = samples_memory(legs.front().config.data, communicator.node_size());
  for (const Leg& leg : legs) {
    const auto shared = std::find_if(legs.begin(), legs.begin() + static_cast<std::ptrdiff_t>(samples_.size()),
                                     [&](const Leg& other) { return same_data(leg, other); });
    if (shared != legs.begin() + static_cast<std::ptrdiff_t>(samples_.size())) {
      samples_.push_back(samples_[static_cast<std::size_t>(shared - legs.begin())]);
      continue;
    }
    Samples& samples = samples_.emplace_back();
    samples.train = load_split(leg.config.data, leg.splits.train, train_range(leg), memory);
    memory -= samples.train->memory_bytes();
    memory_bytes_ += samples.train->memory_bytes();
    if (!leg.splits.has_val) continue;
    const Range share = EvaluationBatches::share(leg.splits.val.samples, leg.job.ranks, leg.job.rank);
    samples.val = load_split(leg.config.data, leg.splits.val, share, memory);
    memory -= samples.val->memory_bytes();
    memory_bytes_ += samples.val->memory_bytes();
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
    evaluators_.back() = std::make_unique<Evaluator>(
        spec.engine, spec.collectives, spec.communicator, *samples_[i].val,
        EvaluatorSpec{
            .batches = evaluation, .limit_batches = leg.config.data.limit_val_batches, .topk = leg.topk, .form = i});
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
