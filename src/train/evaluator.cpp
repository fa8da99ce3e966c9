// SPDX-License-Identifier: Apache-2.0
#include "train/evaluator.hpp"

#include <array>

#include "core/pulse.hpp"
#include "train/interval.hpp"

namespace convoy {

Evaluator::Evaluator(Engine& engine, Collectives& collectives, Communicator& communicator, const Dataset& dataset,
                     const AugmentSpec& augment, Index batch, Index limit_batches, int topk)
    : engine_(engine),
      collectives_(collectives),
      communicator_(communicator),
      dataset_(dataset),
      batches_(dataset, augment, batch),
      limit_batches_(limit_batches),
      topk_(topk),
      logits_(static_cast<std::size_t>(batch * dataset.info().classes)) {}

ValidationRecord Evaluator::run(const ParameterSet& set, const Observer& observe) {
  const ActivityScope phase(Activity::evaluation);
  const auto begin = Clock::now();
  Backend& backend = engine_.backend();
  Program& program = engine_.evaluation();
  const Index classes = dataset_.info().classes;
  Counters sums;
  Index count = batches_.count();
  if (limit_batches_ > 0) count = std::min(count, limit_batches_);
  for (Index i = 0; i < count; ++i) {
    pulse().beat();
    const Batch batch = batches_.batch(i);
    program.feed(batch);
    program.launch(0, set);
    if (observe) {
      collectives_.await(
          backend.download(logits_.data(), program.logits(), batch.valid_count * classes, backend.record()),
          "download of the logits");
      observe(batch.samples.first(static_cast<std::size_t>(batch.valid_count)), logits_.data());
    }
    collectives_.await(backend.counters_ready(), "evaluation counters");
    const Counters counters = backend.take_counters();
    sums.loss += counters.loss;
    sums.top1 += counters.top1;
    sums.topk += counters.topk;
    sums.samples += counters.samples;
  }
  std::array<std::int64_t, 3> counts{sums.top1, sums.topk, sums.samples};
  communicator_.sum(std::span<std::int64_t>(counts), "sum of the evaluation counts");
  communicator_.sum(std::span<double>(&sums.loss, 1), "sum of the evaluation loss");
  ValidationRecord record;
  record.images = counts[2];
  record.top1_count = counts[0];
  record.topk_count = counts[1];
  record.k = topk_;
  record.loss = record.images > 0 ? sums.loss / static_cast<double>(record.images) : 0;
  record.seconds = seconds_between(begin, Clock::now());
  return record;
}

}  // namespace convoy
