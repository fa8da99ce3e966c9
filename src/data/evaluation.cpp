// SPDX-License-Identifier: Apache-2.0
#include "data/evaluation.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace convoy {

Range EvaluationBatches::share(Index samples, int ranks, int rank) {
  const Index part = samples / ranks, rest = samples % ranks;
  return {rank * part + std::min<Index>(rank, rest), part + (rank < rest ? 1 : 0)};
}

EvaluationBatches::EvaluationBatches(const Dataset& dataset, const AugmentSpec& augment_spec, Index batch, int resident)
    : dataset_(dataset), batch_(batch), resident_(resident) {
  require(batch > 0, "evaluation needs a batch size");
  AugmentSpec centred = augment_spec;
  centred.train = false;
  check_augment(centred);
  SampleSpec spec;
  augment(centred, 0, 0, 0, spec);
  for (auto& specs : specs_) specs.assign(static_cast<std::size_t>(batch), spec);

  const Index rest = dataset.range().count % batch, bytes = dataset.info().image_bytes();
  if (rest == 0 || resident >= 0) return;
  last_images_.resize(static_cast<std::size_t>(batch * bytes));
  const std::uint8_t* from = dataset.images() + (dataset.range().count - rest) * bytes;
  for (Index row = 0; row < batch; ++row) {
    std::copy_n(from + std::min(row, rest - 1) * bytes, bytes, last_images_.data() + row * bytes);
  }
}

Index EvaluationBatches::count() const { return (dataset_.range().count + batch_ - 1) / batch_; }

Batch EvaluationBatches::batch(Index number) {
  require(number >= 0 && number < count(), "no such evaluation batch");
  auto& specs = specs_[turn_];
  turn_ = 1 - turn_;
  const Index first = number * batch_, valid = std::min(batch_, dataset_.range().count - first);
  for (Index row = 0; row < batch_; ++row) {
    SampleSpec& spec = specs[static_cast<std::size_t>(row)];
    const Index stored = first + std::min(row, valid - 1);
    spec.sample = resident_ >= 0 ? stored : row;
    spec.a = spec.b = dataset_.label(dataset_.range().begin + stored);
  }
  Batch batch;
  batch.samples = specs;
  batch.valid_count = valid;
  batch.resident = resident_;
  if (resident_ >= 0) return batch;
  batch.images = valid < batch_ ? last_images_.data() : dataset_.images() + first * dataset_.info().image_bytes();
  return batch;
}

}  // namespace convoy
