// SPDX-License-Identifier: Apache-2.0
#include "data/evaluation.hpp"

#include <algorithm>
#include <numeric>

#include "core/deal.hpp"
#include "core/errors.hpp"
#include "data/image_maker.hpp"
#include "data/loader.hpp"

namespace convoy {

Range EvaluationBatches::share(Index samples, int ranks, int rank) { return deal(samples, ranks, rank); }

EvaluationBatches::EvaluationBatches(const Dataset& dataset, const EvaluationSpec& spec)
    : dataset_(dataset), batch_(spec.batch), resident_(spec.resident), groups_(spec.groups) {
  require(spec.batch > 0, "evaluation needs a batch size");
  const auto cut = [this](std::size_t group, Index samples) {
    for (Index first = 0; first < samples; first += batch_)
      runs_.push_back({group, first, std::min(batch_, samples - first)});
  };
  leave_out_samples_of_no_class();
  if (groups_.empty()) cut(0, known_ ? static_cast<Index>(known_->size()) : dataset.range().count);
  for (std::size_t i = 0; i < groups_.size(); ++i) cut(i, static_cast<Index>(groups_[i].samples.size()));
  AugmentSpec centred = spec.augment;
  centred.train = false;
  check_augment(centred);
  augment(centred, 0, 0, 0, centre_);

  BatchQueueSpec queue{.workers = 0, .prefetch = 1, .batch = batch_};
  if (can_be_resident(dataset, centred) && (!known_ || resident_ >= 0)) {
    const Index rest = dataset.range().count % batch_, bytes = dataset.info().image_bytes();
    if (rest > 0 && resident_ < 0) {
      last_images_.resize(static_cast<std::size_t>(batch_ * bytes));
      const std::uint8_t* from = dataset.images() + (dataset.range().count - rest) * bytes;
      for (Index row = 0; row < batch_; ++row)
        std::copy_n(from + std::min(row, rest - 1) * bytes, bytes, last_images_.data() + row * bytes);
    }
  } else {
    for (int worker = 0; worker < std::max(spec.workers, 1); ++worker) makers_.emplace_back(dataset, centred);
    queue.workers = spec.workers;
    queue.prefetch = spec.prefetch;
    image_bytes_ = SampleImages::image_bytes(dataset, centred);
    for (const ShapeGroup& group : groups_)
      image_bytes_ = std::max(image_bytes_, group.size.height * group.size.width * centred.channels);
    queue.image_bytes = static_cast<std::size_t>(batch_ * image_bytes_);
    queue.memory = spec.memory;
  }
  queue_.emplace(queue, [this](Index number, int worker, BatchSlot& slot) { prepare(number, worker, slot); });
}

EvaluationBatches::~EvaluationBatches() = default;

void EvaluationBatches::leave_out_samples_of_no_class() {
  if (dataset_.info().labels_as.empty()) return;
  const auto has_none = [&](Index sample) { return dataset_.label(sample) < 0; };
  for (ShapeGroup& group : groups_) std::erase_if(group.samples, has_none);
  std::vector<Index> all(static_cast<std::size_t>(dataset_.range().count));
  std::iota(all.begin(), all.end(), dataset_.range().begin);
  if (groups_.empty() && std::erase_if(all, has_none) > 0) known_ = std::move(all);
}

void EvaluationBatches::prepare(Index number, int worker, BatchSlot& slot) {
  const Run& run = runs_[static_cast<std::size_t>(number)];
  const Index valid_count = run.count;
  const ShapeGroup* const group = groups_.empty() ? nullptr : &groups_[run.group];
  const Index row_bytes =
      group == nullptr ? image_bytes_ : group->size.height * group->size.width * dataset_.info().channels;
  slot.count = valid_count;
  for (Index row = 0; row < batch_; ++row) {
    SampleSpec& spec = slot.specs[static_cast<std::size_t>(row)];
    if (row >= valid_count) {
      spec = slot.specs[static_cast<std::size_t>(valid_count - 1)];
      if (direct() && resident_ < 0) spec.sample = row;
      continue;
    }
    Index sample =
        known_ ? (*known_)[static_cast<std::size_t>(run.first + row)] : dataset_.range().begin + run.first + row;
    if (group != nullptr) {
      sample = group->samples[static_cast<std::size_t>(run.first + row)];
      sample = makers_[static_cast<std::size_t>(worker)].put_centre(sample, group->size.height, group->size.width,
                                                                    slot.images + row * row_bytes);
    } else if (!direct()) {
      sample = makers_[static_cast<std::size_t>(worker)].put(sample, 0, 0, slot.images + row * row_bytes);
    }
    spec = centre_;
    spec.position = sample;
    spec.sample = resident_ >= 0 ? sample - dataset_.range().begin : row;
    spec.a = spec.b = dataset_.label(sample);
  }
}

Batch EvaluationBatches::batch(Index number) {
  require(number >= 0 && number < count(), "no such evaluation batch");
  if (number == 0) queue_->begin(count(), [] {});
  const BatchSlot& slot = queue_->next(number);
  Batch batch;
  batch.samples = slot.specs;
  batch.images = slot.images;
  batch.valid_count = slot.count;
  batch.resident = resident_;
  if (direct() && resident_ < 0) {
    batch.images =
        slot.count < batch_ ? last_images_.data() : dataset_.images() + number * batch_ * dataset_.info().image_bytes();
  }
  return batch;
}

}  // namespace convoy
