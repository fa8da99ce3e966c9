// SPDX-License-Identifier: Apache-2.0
#include "cli/compute_bench.hpp"

#include <algorithm>

#include "cli/bench.hpp"
#include "core/clock.hpp"

namespace convoy {
namespace {

EngineSpec engine_spec(const BenchConfig& config, const GraphSpec& model, int ranks) {
  InputSpec input;
  input.height = input.width = model.image_size;
  input.channels = model.channels;
  input.mean.fill(127.5F);
  input.std.fill(64.F);
  EngineSpec spec;
  spec.device = config.device;
  spec.plan.replicas = ranks;
  spec.sizes = {{.input = input, .height = model.image_size, .width = model.image_size, .train_sizes = {config.batch}}};
  return spec;
}

}  // namespace

ComputeBench::ComputeBench(Communicator& communicator, const BenchConfig& config)
    : model_(with_usual_input(config.model, config.classes, config.channels, config.data.image_size)),
      engine_(make_engine(communicator, build_graph(model_), engine_spec(config, model_, communicator.size()))),
      rank_(communicator.rank()),
      batch_(config.batch) {
  make_images(rank_);
  Engine& engine = *engine_;
  const TransportChoice choice = choose_transport({.backend = config.backend == "all" ? "auto" : config.backend,
                                                   .memory = config.cuda_aware ? MpiMemory::device : MpiMemory::host},
                                                  device_identities(communicator, engine.backend()));
  transport_ = choice.reason;
  collectives_ = make_collectives(choice, communicator, engine.backend(),
                                  {.replicas = communicator.size(),
                                   .reproducible = config.reproducible,
                                   .max_count = std::max(engine.plan().table.block(), engine.layout().count())});
  if (config.gradients) {
    SyncSpec spec = gradient_sums(communicator.size(), communicator.size(), rank_);
    spec.reproducible = config.reproducible;
    sync_ = make_sync(spec, {.backend = engine.backend(),
                             .collectives = *collectives_,
                             .plan = engine.plan(),
                             .layout = engine.layout(),
                             .gradients = engine.gradients()});
  } else {
    own_ = {engine.backend().allocate(engine.layout().count()), engine.layout().count()};
  }
  engine.upload(set(), engine.initial_set(1), *collectives_);
  step_samples_ = config.gradients ? batch_ * communicator.size() : batch_;
  resident_ = engine.backend().keep_resident(pixels_.data(), batch_, static_cast<Index>(pixels_.size()) / batch_);
  in_flight_.emplace(engine.backend(), *collectives_);
}

void ComputeBench::make_images(int rank) {
  const SyntheticSpec spec{.samples = batch_,
                           .height = model_.image_size,
                           .width = model_.image_size,
                           .channels = model_.channels,
                           .classes = model_.classes,
                           .seed = static_cast<std::uint64_t>(rank) + 1};
  const auto bytes = static_cast<std::size_t>(model_.image_size * model_.image_size * model_.channels);
  pixels_.resize(bytes * static_cast<std::size_t>(batch_));
  samples_.resize(static_cast<std::size_t>(batch_));
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    samples_[i].sample = samples_[i].position = static_cast<Index>(i);
    samples_[i].a = synthetic_sample(spec, static_cast<Index>(i), pixels_.data() + i * bytes);
  }
}

void ComputeBench::step(Index number) {
  Engine& engine = *engine_;
  Backend& backend = engine.backend();
  backend.set_step({.learning_rate = 1e-3F, .seed = 1, .step = number, .options = {{0.9}}});
  const ReplayKey key{.samples = batch_, .replica = rank_};
  engine.feed(key, {.samples = samples_,
                    .images = resident_ >= 0 ? nullptr : pixels_.data(),
                    .resident = resident_,
                    .valid_count = batch_,
                    .replica = sync_ ? rank_ : 0,
                    .scale = 1.F / static_cast<float>(step_samples_),
                    .norm_scale = 1.F / static_cast<float>(batch_)});
  const auto body = [&] {
    for (std::size_t stage = 0; stage < engine.stages().size(); ++stage) {
      engine.launch(key, stage, set());
      if (sync_) sync_->ready(stage, engine.stages()[stage], rank_);
    }
    if (sync_)
      sync_->replica_done(rank_, batch_, engine.updater());
    else
      engine.updater().launch(set(), engine.gradients());
  };
  if (sync_) sync_->begin_replica(rank_, batch_);
  if (!sync_ || sync_->capturable(rank_))
    backend.replay(key.hash(), body);
  else
    body();
  if (sync_) sync_->step_done(number);
  in_flight_->launched("an earlier step");
}

void ComputeBench::settle() {
  Backend& backend = engine_->backend();
  collectives_->await(backend.counters_ready(), "counters");
  const Counters counters = backend.take_counters();
  if (counters.samples > 0) loss_ = counters.loss / static_cast<double>(counters.samples);
}

BenchTimes ComputeBench::run(Communicator& communicator, Index warmup, Index steps) {
  Backend& backend = engine_->backend();
  for (Index i = 0; i < warmup; ++i) step(i);
  settle();
  collectives_->take_wait_seconds();
  const DeviceCounts before = backend.counts();
  communicator.barrier("start of the timed steps");
  // A GPU is asked for its results a few times only: it computes while the host is ahead.
  const Index block = backend.host_reads() ? 1 : std::max<Index>(1, steps / 4);
  BenchTimes times;
  double total = 0;
  const double cpu = cpu_seconds(CpuTime::process);
  for (Index done = 0; done < steps;) {
    const Index count = std::min(block, steps - done);
    const auto begin = real_clock().now();
    for (Index i = 0; i < count; ++i) step(warmup + done + i);
    settle();
    const double seconds = seconds_since(begin);
    total += seconds;
    times.fastest = done == 0 ? seconds / static_cast<double>(count)
                              : std::min(times.fastest, seconds / static_cast<double>(count));
    done += count;
  }
  const auto each = static_cast<double>(steps);
  times.mean = total / each;
  times.cpu = (cpu_seconds(CpuTime::process) - cpu) / each;
  times.wait = collectives_->take_wait_seconds() / each;
  times.graph_launches = static_cast<double>(backend.counts().graph_launches - before.graph_launches) / each;
  times.allocations = backend.counts().allocations - before.allocations;
  return times;
}

}  // namespace convoy
