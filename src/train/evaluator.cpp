// SPDX-License-Identifier: Apache-2.0
#include "train/evaluator.hpp"

#include <algorithm>
#include <array>

#include "core/pulse.hpp"
#include "train/interval.hpp"
#include "train/pace.hpp"

namespace convoy {
namespace {

/// Batches that `samples` samples make.
Index rounds(Index samples, Index batch, Index limit) {
  const Index all = (samples + batch - 1) / batch;
  return limit > 0 ? std::min(all, limit) : all;
}

}  // namespace

Evaluator::Evaluator(Engine& engine, Collectives& collectives, Communicator& communicator, const Dataset& dataset,
                     const EvaluatorSpec& spec)
    : engine_(engine),
      collectives_(collectives),
      communicator_(communicator),
      dataset_(dataset),
      spec_(spec),
      batches_(dataset, spec.batches),
      rounds_(rounds(EvaluationBatches::share(dataset.info().samples, communicator.size(), 0).count, spec.batches.batch,
                     spec.limit_batches)),
      logits_(static_cast<std::size_t>(spec.batches.batch * dataset.info().classes)) {}

std::optional<ValidationRecord> Evaluator::run(const ParameterSet& set, const StopAgreed& stop_agreed,
                                               const Observer& observe) {
  const ActivityScope phase(Activity::evaluation);
  const auto begin = Clock::now();
  Backend& backend = engine_.backend();
  Program& program = engine_.evaluation(spec_.form);
  const Index classes = dataset_.info().classes;
  Pace pace(backend, collectives_);
  for (Index i = 0; i < rounds_; ++i) {
    pulse().beat();
    if (stop_agreed()) return std::nullopt;
    if (i >= batches_.count()) continue;  // others have one more
    const Batch batch = batches_.batch(i);
    program.feed(batch);
    program.launch(0, set);
    if (observe) {
      collectives_.await(
          backend.download(logits_.data(), program.logits(), batch.valid_count * classes, backend.record()),
          "download of the logits");
      observe(batch.samples.first(static_cast<std::size_t>(batch.valid_count)), logits_.data());
    }
    pace.launched("an earlier batch of the evaluation");
  }
  collectives_.await(backend.counters_ready(), "evaluation counters");
  const Counters sums = backend.take_counters();
  double loss = sums.loss;
  std::array<std::int64_t, 3> counts{sums.top1, sums.topk, sums.samples};
  communicator_.sum(std::span<std::int64_t>(counts), "sum of the evaluation counts");
  communicator_.sum(std::span<double>(&loss, 1), "sum of the evaluation loss");
  ValidationRecord record;
  record.images = counts[2];
  record.top1_count = counts[0];
  record.topk_count = counts[1];
  record.k = spec_.topk;
  record.loss = record.images > 0 ? loss / static_cast<double>(record.images) : 0;
  record.seconds = seconds_between(begin, Clock::now());
  return record;
}

}  // namespace convoy
