// SPDX-License-Identifier: Apache-2.0
// Set-up of a training job, in the order in which things can fail, then the loop.
#include "train/train.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "train/data.hpp"
#include "train/run_folder.hpp"
#include "train/stop.hpp"
#include "train/trainer.hpp"

namespace convoy {
namespace {

struct Data {
  DatasetInfo train, val;
  bool has_val = false;
  std::unique_ptr<Dataset> train_samples, val_samples;
};

void open_data(const TrainConfig& config, Data& data) {
  data.train = open_split(config.data, "train");
  data.has_val = !config.skip_eval && split_exists(config.data, "val");
  if (!data.has_val) return;
  data.val = open_split(config.data, "val");
  if (data.val.classes != data.train.classes || data.val.channels != data.train.channels) {
    fail(Exit::data,
         "train and val splits of '{}' differ: {} and {} classes, {} and {} channels; prepare both together",
         config.data.folder, data.train.classes, data.val.classes, data.train.channels, data.val.channels);
  }
}

/// --start-epoch: earlier epochs count as done.
Position start_position(const TrainConfig& config, const Job& job) {
  const auto step = static_cast<Index>(std::llround(config.start_epoch * static_cast<double>(job.steps_per_epoch)));
  return {.epoch = step / job.steps_per_epoch, .step_in_epoch = step % job.steps_per_epoch, .step = step};
}

std::string agreed_facts(const TrainConfig& config, const Job& job, const DatasetInfo& info) {
  return fmt::format("version {}, configuration {}, data {:016x}, {} samples, {} steps an epoch", build_id(),
                     configuration_hash(config), info.digest, info.samples, job.steps_per_epoch);
}

}  // namespace

Exit train(Communicator& communicator, const TrainConfig& wanted) {
  TrainConfig config = wanted;
  watch_stop_signals();
  const int ranks = communicator.size(), rank = communicator.rank();
  make_run_folder(communicator, config);

  Data data;
  if (const Exit code = communicator.together("opening the data set", [&] { open_data(config, data); });
      code != Exit::ok) {
    return code;
  }
  const std::string resume = checkpoint_to_resume(communicator, config.checkpoint);
  int replicas = config.sync.replicas;
  std::string choices;
  if (!resume.empty()) {
    CheckpointMeta meta;
    const Exit code = communicator.together("reading the checkpoint", [&] { meta = load_checkpoint_meta(resume); });
    if (code != Exit::ok) return code;
    if (replicas == 0 && config.sync.grad_accum_steps == 1) replicas = meta.replicas;
    if (const auto found = meta.texts.find("choices"); found != meta.texts.end()) choices = found->second;
  }
  const Job job = plan_job(config, data.train.samples, ranks, rank, replicas);
  communicator.require_equal(agreed_facts(config, job, data.train), "start-up facts");

  const Range range = job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count) : Range{};
  const Range val_range = data.has_val ? EvaluationBatches::share(data.val.samples, ranks, rank) : Range{};
  if (const Exit code = communicator.together("loading the samples",
                                              [&] {
                                                data.train_samples = load_split(config.data, data.train, range);
                                                if (data.has_val)
                                                  data.val_samples = load_split(config.data, data.val, val_range);
                                              });
      code != Exit::ok) {
    return code;
  }

  const AugmentSpec augment = augment_spec(config.data, data.train, config.seed, Use::training);
  EngineSpec spec{
      .device = config.device,
      .plan = {.replicas = job.replicas,
               .bucket_floats = std::max<Index>(16, static_cast<Index>(config.sync.bucket_mb * 262144)),
               .weight_decay = static_cast<float>(config.optimiser.weight_decay),
               .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
               .bias_weight_decay = static_cast<float>(config.optimiser.bias_weight_decay),
               .sync_bn = config.sync.sync_bn},
      .optimiser = {.rule = config.optimiser.rule, .clip_norm = static_cast<float>(config.optimiser.clip_norm)},
      .input = input_spec(config.data, data.train),
      .height = augment.height,
      .width = augment.width,
      .train_sizes = batch_sizes(job.order),
      .eval_size = data.has_val
                       ? std::min(config.eval_batch,
                                  std::max<Index>(1, EvaluationBatches::share(data.val.samples, ranks, 0).count))
                       : 0,
      .topk = static_cast<int>(std::min<Index>(config.topk, data.train.classes)),
      .choices = choices};
  std::unique_ptr<Engine> engine;
  if (const Exit code =
          make_engine(communicator, build_graph(graph_spec(config.model, config.data, data.train)), spec, engine);
      code != Exit::ok) {
    return code;
  }
  engine->backend().keep_resident(data.train_samples->images(), range.count, data.train.image_bytes());

  auto collectives =
      make_mpi_collectives(communicator, engine->backend(),
                           {.replicas = job.replicas,
                            .reproducible = config.sync.reproducible,
                            .max_count = std::max(engine->plan().table.block(), engine->layout().count())});
  auto sync = make_sync({.mode = config.sync.mode,
                         .local_steps = config.sync.local_steps,
                         .local_start = config.sync.local_start,
                         .momentum = config.sync.momentum,
                         .reproducible = config.sync.reproducible,
                         .replicas = job.replicas,
                         .ranks = ranks,
                         .rank = rank},
                        engine->backend(), *collectives, engine->plan(), spec.optimiser, engine->updater(),
                        engine->gradients());
  Checkpointing checkpointing(communicator, *collectives, *engine, *sync, config, job);
  Position position;
  if (const Exit code = communicator.together("loading the weights",
                                              [&] {
                                                if (resume.empty()) {
                                                  checkpointing.start();
                                                  position = start_position(config, job);
                                                } else {
                                                  position = checkpointing.resume(resume);
                                                }
                                              });
      code != Exit::ok) {
    return code;
  }

  Loader loader(*data.train_samples, {.order = job.order,
                                      .augment = augment,
                                      .first_replica = job.run.first,
                                      .replica_count = job.run.count,
                                      .workers = config.data.workers,
                                      .prefetch = config.data.prefetch,
                                      .resident = true});
  std::optional<Evaluator> evaluator;
  if (data.has_val) {
    evaluator.emplace(*engine, *collectives, communicator, *data.val_samples,
                      augment_spec(config.data, data.val, config.seed, Use::evaluation), spec.eval_size,
                      config.data.limit_val_batches, spec.topk);
  }
  std::unique_ptr<Metrics> metrics;
  if (const Exit code = communicator.together("opening the log",
                                              [&] {
                                                if (rank != 0) return;
                                                metrics = std::make_unique<Metrics>(
                                                    MetricsSpec{.folder = config.output.folder,
                                                                .tensorboard = config.output.tensorboard,
                                                                .append = !resume.empty(),
                                                                .resume_step = position.step,
                                                                .ranks = ranks,
                                                                .epochs = static_cast<Index>(std::ceil(config.epochs)),
                                                                .k = spec.topk});
                                                describe_run(communicator, config, engine->chosen_device());
                                              });
      code != Exit::ok) {
    return code;
  }
  log::info("{}; {}; {} parameters", engine->plan().graph.model, engine->chosen_device(),
            cost_of(engine->plan().graph, augment.height, augment.width).parameters);
  log::info("{}", describe(job, config));

  const Schedule schedule(schedule_of(config, job.peak_rate), job.steps_per_epoch);
  Trainer trainer({.communicator = communicator,
                   .collectives = *collectives,
                   .engine = *engine,
                   .sync = *sync,
                   .loader = loader,
                   .evaluator = evaluator ? &*evaluator : nullptr,
                   .metrics = metrics.get(),
                   .checkpointing = checkpointing},
                  config, job, schedule);
  const Exit code = trainer.run(position);
  if (rank == 0) {
    log::info("{}", metrics->table());
    metrics->event("end", {{"result", code == Exit::ok ? "finished" : "stopped"}},
                   {{"best_top1", checkpointing.best_top1}, {"exit", static_cast<double>(code)}});
    if (evaluator) log::info("best held-out accuracy: {:.2f} % top-1", checkpointing.best_top1);
  }
  return code;
}

}  // namespace convoy
