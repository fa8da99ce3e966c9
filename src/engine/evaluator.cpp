// SPDX-License-Identifier: Apache-2.0
#include "engine/evaluator.hpp"

#include <algorithm>
#include <cmath>

#include "backend/rules/cross_entropy.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "engine/engine.hpp"

namespace convoy {
namespace {

/// Batches of the rank with most.
Index all_batches(const EvaluatorSpec& spec, Index samples, int ranks) {
  const Index batch = spec.batches.batch;
  Index most = 0;
  if (spec.split_groups.empty()) {
    most = (EvaluationBatches::share(samples, ranks, 0).count + batch - 1) / batch;
  } else {
    for (int rank = 0; rank < ranks; ++rank)
      most = std::max(most, count_batches(share_of(spec.split_groups, ranks, rank), batch));
  }
  return most;
}

Index most_batches(const EvaluatorSpec& spec, Index samples, int ranks) {
  const Index all = all_batches(spec, samples, ranks);
  return spec.limit_batches > 0 ? std::min(all, spec.limit_batches) : all;
}

float smoothing_of(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const auto* loss = as<Loss>(node)) return loss->label_smoothing;
  }
  return 0;
}

/// What the device counts, from logits in host memory.
Counters count(std::span<const SampleSpec> samples, const float* logits, Index classes, int topk, float smoothing) {
  Counters counters;
  for (const SampleSpec& sample : samples) {
    const float label_logit = logits[sample.a];
    const double top = *std::max_element(logits, logits + classes);
    double sum = 0, exponents = 0;
    Index before = 0;
    for (std::int32_t k = 0; k < classes; ++k) {
      sum += logits[k];
      exponents += std::exp(logits[k] - top);
      if (k != sample.a && ranks_before(logits[k], k, label_logit, sample.a)) ++before;
    }
    const SoftTarget target{sample.a, sample.a, 1, smoothing, static_cast<double>(classes)};
    counters.sums[Counter::loss] += target.loss(top + std::log(exponents), 1, label_logit, label_logit, sum);
    counters.sums[Counter::top1] += before == 0 ? 1 : 0;
    counters.sums[Counter::topk] += before < topk ? 1 : 0;
    ++counters.samples;
    logits += classes;
  }
  return counters;
}

}  // namespace

void sum_over_ranks(Communicator& communicator, Counters& counters, const char* what) {
  communicator.sum(std::span<double>(counters.sums.values), what);
  communicator.sum(std::span<std::int64_t>(&counters.samples, 1), what);
}

Evaluator::Evaluator(Engine& engine, Collectives& collectives, Communicator& communicator, const Dataset& dataset,
                     const EvaluatorSpec& spec)
    : engine_(engine),
      collectives_(collectives),
      communicator_(communicator),
      dataset_(dataset),
      spec_(spec),
      batches_(dataset, spec.batches),
      rounds_(most_batches(spec, dataset.info().samples, communicator.size())),
      is_limited_(spec.limit_batches > 0 && rounds_ < all_batches(spec, dataset.info().samples, communicator.size())),
      views_(views_of(spec)),
      logits_(static_cast<std::size_t>(spec.batches.batch * dataset.info().classes)) {}

void Evaluator::download(const Program& program, Index count, std::vector<float>& to) {
  Backend& backend = engine_.backend();
  collectives_.await(backend.download(to.data(), program.logits(), count, backend.record()), "download of the logits");
}

std::vector<Evaluator::View> Evaluator::views_of(const EvaluatorSpec& spec) {
  const auto pixels = static_cast<std::int16_t>(spec.translate_test), back = static_cast<std::int16_t>(-pixels);
  std::vector<View> views{{}};
  if (pixels > 0)
    views = {{.weight = 0.5F},
             {.down = back, .right = back, .weight = 0.25F},
             {.down = pixels, .right = pixels, .weight = 0.25F}};
  if (!spec.flip_test) return views;
  const std::size_t count = views.size();
  for (std::size_t i = 0; i < count; ++i) {
    views[i].weight /= 2;
    views.push_back(views[i]);
    views.back().mirrored = 1;
  }
  return views;
}

void Evaluator::launch(std::size_t shape, const ParameterSet& set, const Batch& batch) {
  Program& program = engine_.evaluation(spec_.phase, shape);
  program.feed(batch);
  engine_.backend().replay(ReplayKey::of_evaluation(spec_.phase, shape, set).hash(), [&] { program.launch(0, set); });
}

Counters Evaluator::run_views(std::size_t shape, const ParameterSet& set, const Batch& batch) {
  const Program& program = engine_.evaluation(spec_.phase, shape);
  const Index classes = dataset_.info().classes, values = batch.valid_count * classes;
  download(program, values, logits_);
  for (float& logit : logits_) logit *= views_.front().weight;
  logits_of_view_.resize(logits_.size());
  for (std::size_t v = 1; v < views_.size(); ++v) {
    const View& view = views_[v];
    seen_.assign(batch.samples.begin(), batch.samples.end());
    for (SampleSpec& sample : seen_) {
      sample.y = static_cast<std::int16_t>(sample.y + view.down);
      sample.x = static_cast<std::int16_t>(sample.x + view.right);
      sample.flip ^= view.mirrored;
    }
    Batch shown = batch;
    shown.samples = seen_;
    launch(shape, set, shown);
    download(program, values, logits_of_view_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(values); ++i) logits_[i] += view.weight * logits_of_view_[i];
  }
  return count(batch.samples.first(static_cast<std::size_t>(batch.valid_count)), logits_.data(), classes, spec_.topk,
               smoothing_of(engine_.plan().graph));
}

std::optional<ValidationRecord> Evaluator::run(const ParameterSet& set, const StopAgreed& stop_agreed,
                                               const Observer& observe) {
  const ActivityScope phase(Activity::evaluation);
  const auto begin = real_clock().now();
  Backend& backend = engine_.backend();
  InFlightLimit in_flight(backend, collectives_);
  Counters counted;
  constexpr double tell_every = 10;  // seconds
  double told = 0;
  for (Index i = 0; i < rounds_; ++i) {
    progress().mark();
    if (stop_agreed()) {
      // What the batches so far have counted would else be taken for the training's.
      collectives_.await(backend.counters_ready(), "counters of an evaluation that was stopped");
      static_cast<void>(backend.take_counters());
      return std::nullopt;
    }
    if (i >= batches_.count()) continue;  // others have one more
    const std::size_t shape = batches_.group(i);
    const Batch batch = batches_.batch(i);
    launch(shape, set, batch);
    if (views_.size() > 1) {
      counted.add(run_views(shape, set, batch));
    } else if (observe) {
      download(engine_.evaluation(spec_.phase, shape), batch.valid_count * dataset_.info().classes, logits_);
    }
    if (observe) observe(batch.samples.first(static_cast<std::size_t>(batch.valid_count)), logits_.data());
    in_flight.launched("an earlier batch of the evaluation");
    if (const double seconds = seconds_since(begin); seconds >= told + tell_every) {
      told = seconds;
      log::info("evaluation: {} of {} batches after {:.0f} s", i + 1, rounds_, seconds);
    }
  }
  collectives_.await(backend.counters_ready(), "evaluation counters");
  const Counters of_device = backend.take_counters();
  if (views_.size() == 1) counted.add(of_device);
  sum_over_ranks(communicator_, counted, "sums of the evaluation counters");
  ValidationRecord record;
  record.images = counted.samples;
  record.counters = shown(counted.sums, counted.samples);
  record.k = spec_.topk;
  record.seconds = seconds_since(begin);
  if (is_limited_) record.split_images = dataset_.info().samples;
  return record;
}

}  // namespace convoy
