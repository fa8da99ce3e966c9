// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.hpp"
#include "cli/usual_input.hpp"
#include "core/log.hpp"
#include "sync/sync.hpp"
#include "train/engine.hpp"

namespace convoy {
namespace {

struct Images {
  std::vector<std::uint8_t> pixels;
  std::vector<SampleSpec> samples;
};

Images make_images(const GraphSpec& model, Index batch, int rank) {
  const SyntheticSpec spec{.samples = batch,
                           .height = model.image_size,
                           .width = model.image_size,
                           .channels = model.channels,
                           .classes = model.classes,
                           .seed = static_cast<std::uint64_t>(rank) + 1};
  Images images;
  const auto bytes = static_cast<std::size_t>(model.image_size * model.image_size * model.channels);
  images.pixels.resize(bytes * static_cast<std::size_t>(batch));
  images.samples.resize(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < images.samples.size(); ++i) {
    images.samples[i].sample = images.samples[i].position = static_cast<Index>(i);
    images.samples[i].a = synthetic_sample(spec, static_cast<Index>(i), images.pixels.data() + i * bytes);
  }
  return images;
}

EngineSpec engine_spec(const BenchConfig& config, const GraphSpec& model, int ranks) {
  InputSpec input;
  input.height = input.width = model.image_size;
  input.channels = model.channels;
  input.mean.fill(127.5F);
  input.std.fill(64.F);
  EngineSpec spec;
  spec.device = config.device;
  spec.plan.replicas = ranks;
  spec.input = input;
  spec.height = spec.width = model.image_size;
  spec.train_sizes = {config.batch};
  return spec;
}

/// One rank's replica, stepping as the trainer does.
class ComputeBench {
 public:
  ComputeBench(Communicator& communicator, Engine& engine, const BenchConfig& config, const Images& images)
      : engine_(engine), images_(images), rank_(communicator.rank()), batch_(config.batch) {
    const bool alone = !config.gradients;
    collectives_ = make_mpi_collectives(communicator, engine.backend(),
                                        {.replicas = communicator.size(),
                                         .reproducible = config.reproducible,
                                         .max_count = std::max(engine.plan().table.block(), engine.layout().count())});
    if (alone) {
      own_ = {engine.backend().allocate(engine.layout().count()), engine.layout().count()};
    } else {
      sync_ = make_sync({.mode = SyncMode::gradients,
                         .reproducible = config.reproducible,
                         .replicas = communicator.size(),
                         .ranks = communicator.size(),
                         .rank = communicator.rank()},
                        engine.backend(), *collectives_, engine.plan(), OptimiserSpec{}, engine.updater(),
                        engine.gradients());
    }
    engine.upload(set(), engine.initial_set(1), *collectives_);
    step_samples_ = alone ? batch_ : batch_ * communicator.size();
  }

  /// Collective where gradients are summed.
  void step(Index number) {
    Backend& backend = engine_.backend();
    backend.set_step({.rate = 1e-3F, .momentum = 0.9F, .ema_decay = 0, .seed = 1, .step = number});
    Program& program = engine_.training(batch_);
    program.feed({.samples = images_.samples,
                  .images = images_.pixels.data(),
                  .valid_count = batch_,
                  .replica = sync_ ? rank_ : 0,
                  .scale = 1.F / static_cast<float>(step_samples_),
                  .norm_scale = 1.F / static_cast<float>(batch_)});
    const auto stages = program.stages();
    if (sync_) sync_->begin_replica(rank_, batch_);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      backend.replay(s + 1, [&] { program.launch(s, set()); });
      if (!sync_) continue;
      sync_->made_final(s, stages[s], rank_);
      collectives_->poll();
    }
    if (sync_) {
      sync_->replica_done(rank_, batch_);
      sync_->step_done(number);
    } else {
      engine_.updater().launch(set(), engine_.gradients());
    }
    collectives_->await(backend.counters_ready(), "counters");
    loss_ = backend.take_counters().loss / static_cast<double>(batch_);
  }

  double loss() const { return loss_; }
  double take_wait_seconds() { return collectives_->take_wait_seconds(); }

 private:
  ParameterSet& set() { return sync_ ? sync_->set(rank_) : own_; }

  Engine& engine_;
  const Images& images_;
  int rank_;
  Index batch_, step_samples_ = 0;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<Sync> sync_;  ///< null: every rank trains alone
  ParameterSet own_;
  double loss_ = 0;
};

}  // namespace

Exit bench_compute(Communicator& communicator, const BenchConfig& config) {
  const GraphSpec model = with_usual_input(config.model, config.classes, config.channels, config.data.image_size);
  const auto engine = make_engine(communicator, build_graph(model), engine_spec(config, model, communicator.size()));
  const Images images = make_images(model, config.batch, communicator.rank());
  ComputeBench bench(communicator, *engine, config, images);
  for (Index i = 0; i < config.warmup; ++i) bench.step(i);
  bench.take_wait_seconds();
  communicator.barrier("start of the timed steps");
  Stopwatch watch;
  for (Index i = 0; i < config.steps; ++i) {
    watch.start();
    bench.step(config.warmup + i);
    watch.stop();
  }
  const double wait = bench.take_wait_seconds() / static_cast<double>(config.steps);
  const auto rates = of_all_ranks(communicator, static_cast<double>(config.batch) / watch.mean(), "images a second");
  double slowest[3] = {watch.mean(), watch.minimum(), wait};
  communicator.maximum(std::span<double>(slowest), "time of the steps");
  double total = 0;
  for (const double rate : rates) total += rate;
  const Cost cost = cost_of(engine->plan().graph, model.image_size, model.image_size);
  log::info("{}, {}x{}x{}, {} ranks x batch {}, {}; {}", engine->plan().graph.model, model.channels, model.image_size,
            model.image_size, communicator.size(), config.batch,
            config.gradients ? "gradients summed over the ranks" : "ranks alone", engine->chosen_device());
  log::info("images/s: {:.1f} in all; a rank: {}", total, print_ranks(rates));
  log::info("step: mean {:.2f} ms, min {:.2f} ms of {} steps; waiting for sums {:.2f} ms (slowest rank)",
            slowest[0] * 1e3, slowest[1] * 1e3, config.steps, slowest[2] * 1e3);
  log::info("training: {:.1f} GFLOP/s in all ({:.3f} GFLOP an image); loss {:.4f}", total * cost.training_flops / 1e9,
            cost.training_flops / 1e9, bench.loss());
  return Exit::ok;
}

}  // namespace convoy
