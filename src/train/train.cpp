// SPDX-License-Identifier: Apache-2.0
// Set-up of a training job, in the order in which things can fail, then the loop.
#include "train/train.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "comm/agreed_error.hpp"
#include "comm/time_limit.hpp"
#include "config/hash.hpp"
#include "config/print.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/stop.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "engine/model_data.hpp"
#include "engine/placement.hpp"
#include "run/attempt.hpp"
#include "run/state_file.hpp"
#include "run/supervisor.hpp"
#include "train/rehearsal.hpp"
#include "train/run_folder.hpp"
#include "train/setup.hpp"
#include "train/trainer.hpp"

namespace convoy {
namespace {

/// The kernels that the checkpoint's run chose, where this one does the same work: only then do bits repeat.
std::string choices_for(const TrainConfig& config, const Job& job, const CheckpointMeta& meta) {
  const auto choices = meta.texts.find("choices");
  const auto batch = meta.numbers.find("batch");
  if (choices == meta.texts.end() || batch == meta.numbers.end()) return {};
  const bool same = meta.configuration_hash == configuration_hash(config) && meta.replicas == job.replicas &&
                    batch->second == static_cast<double>(job.order.batch);
  return same ? choices->second : std::string();
}

/// Multiply-adds of a validation's image, on average over the shapes.
double validation_macs(const Graph& graph, const TrainingPhase& phase) {
  double macs = 0, images = 0;
  for (const ShapeGroup& group : phase.val_groups) {
    const auto count = static_cast<double>(group.samples.size());
    macs += count * cost_of(graph, group.size.height, group.size.width).macs;
    images += count;
  }
  const AugmentSpec& augment = phase.evaluation.augment;
  return images > 0 ? macs / images : cost_of(graph, augment.height, augment.width).macs;
}

ForecastSpec forecast_spec(const TrainConfig& config, const Graph& graph, const std::vector<TrainingPhase>& phases,
                           const Position& position) {
  const Job& job = phases.front().job;
  ForecastSpec spec{.timeline = job.timeline,
                    .phases = {},
                    .first_step = position.step,
                    .last_step = job.total_steps,
                    .val_interval = config.val_interval,
                    .save_interval = config.checkpoint.save ? config.checkpoint.save_every : 0};
  for (const TrainingPhase& phase : phases) {
    PhaseWork work{.begin_epoch = phase.begin_epoch,
                   .train_images = static_cast<double>(phase.job.global_batch),
                   .train_work = cost_of(graph, phase.augment.height, phase.augment.width).training_flops};
    if (phase.splits.has_val) {
      Index images = phase.splits.val.samples;
      if (config.data.limit_val_batches > 0)
        images = std::min(images, config.data.limit_val_batches * config.eval_batch * job.ranks);
      work.val_images = static_cast<double>(images);
      work.val_work = 2 * validation_macs(graph, phase);
    }
    spec.phases.push_back(work);
  }
  return spec;
}

TransportWish wish_of(const SyncConfig& sync) {
  return {.backend = sync.backend, .memory = sync.cuda_aware ? MpiMemory::device : MpiMemory::host};
}

/// --start-epoch: earlier epochs count as done.
Position start_position(const TrainConfig& config, const Job& job) {
  const Index step = job.timeline.step(config.start_epoch), epoch = job.timeline.epoch_of(step);
  return {.epoch = epoch, .step_in_epoch = step - job.timeline.first_step(epoch), .step = step};
}

std::string agreed_facts(const TrainConfig& config, const std::vector<TrainingPhase>& phases) {
  std::string text = fmt::format("version {}, configuration {}", build_id(), configuration_hash(config));
  for (const TrainingPhase& phase : phases) {
    const DatasetInfo &train = phase.splits.train, &val = phase.splits.val;
    text += fmt::format(", train {:016x} of {} samples, val {:016x} of {}, {} steps an epoch", train.digest,
                        train.samples, val.digest, val.samples, phase.job.steps_per_epoch);
  }
  return text;
}

/// The table that heads the log, and what about it looks like an accident.
void show(const Seating& seating) {
  std::string table = table_of(seating);
  table.pop_back();
  log::info("{}", table);
  if (seating.seats.size() == 1) return;
  for (const std::string& problem : find_overbooked_cores(seating)) {
    log::warn("{}; 'convoy preflight' shows the whole; check the launcher's options for cores and binding", problem);
  }
}

/// Collective. Fills the seats' devices. Other instruction sets give other bits: unlike nodes are allowed, and said.
void compare_devices(Communicator& communicator, const std::string& mine, Seating& seating) {
  const auto all = communicator.all_gather(mine, "devices of the ranks");
  for (std::size_t r = 0; r < all.size(); ++r) seating.seats[r].device = all[r];
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& device) { return device != all[0]; });
  if (other == all.end()) return;
  log::info("ranks compute on unlike devices ('{}', '{}'): runs on other nodes will not repeat these bits", all[0],
            *other);
}

RunState first_state(const Attempt& attempt, int ranks, const KeptLimit& limit, const RunState& before) {
  const AttemptRecord& record = attempt.record;
  return {.run = record.run,
          .attempt = record.number,
          .scheduler = record.scheduler,
          .job = record.job,
          .host = record.host,
          .pid = record.pid,
          .ranks = ranks,
          .end_time = limit.end_time,
          .checkpoint = before.checkpoint,
          .checkpoint_step = before.checkpoint_step,
          .checkpoint_time = before.checkpoint_time,
          .checkpoint_seconds = before.checkpoint_seconds,
          .checkpoint_stall = before.checkpoint_stall,
          .started = record.started,
          .progressed = record.started};
}

/// What the attempt before left of checkpoints: how many attempts brought none is counted from the newest. A run that
/// begins anew has none, and a state that can't be read is replaced in a moment.
RunState state_before(const TrainConfig& config) {
  if (config.checkpoint.resume.empty()) return {};
  try {
    return read_run_state(config.output.folder).value_or(RunState{});
  } catch (const Error&) {
    return {};
  }
}

/// Seconds since 1970; 0 where the file can't be asked.
double time_of_file(const std::string& path) {
  std::error_code failed;
  const auto written = std::filesystem::last_write_time(path, failed);
  if (failed) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(written).time_since_epoch()).count();
}

/// Collective.
Exit run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& wanted, Rehearsal* rehearsal) {
  const double began = wall_seconds();
  TrainConfig config = wanted;
  const int ranks = communicator.size(), rank = communicator.rank();
  make_run_folder(communicator, config);
  Attempt& attempt = supervisor.begin_attempt(
      communicator, {.run_folder = config.output.folder,
                     .checkpoint_folder = config.checkpoint.save ? config.checkpoint.folder : "",
                     .take_over = config.take_over,
                     .wait_seconds = config.wait_for_other});
  const KeptLimit limit = keep_time_limit(communicator, config.time_limit);
  supervisor.watch_attempt(communicator,
                           rank == 0 ? first_state(attempt, ranks, limit, state_before(config)) : RunState{});
  StateFile* const state = supervisor.state();
  Seating seating = take_seats(communicator, config.device);
  // Threads decide bits: the number stands in the configuration that is hashed and kept.
  config.device.threads = seating.threads;

  std::vector<TrainingPhase> phases;
  progress().doing("opening the data set");
  run_agreed(communicator, "opening the data set", [&] { phases = open_phases(config); });
  const Splits& splits = phases.front().splits;
  if (rank == 0 && !splits.has_val && !config.skip_eval)
    log::warn(
        "'{}' has no val split: nothing is evaluated, and there will be no best.h5; give --val-data DIR, or "
        "--skip-eval "
        "where that is meant",
        folder_of(config.data, "val"));
  Graph graph;
  run_alike(communicator,
            [&] { graph = build_graph(graph_spec(config.model, phases.front().config.data, splits.train)); });
  std::optional<FoundCheckpoint> resume;
  run_alike(communicator,
            [&] { resume = checkpoint_to_resume(communicator, config.checkpoint, attempt, graph.model); });
  run_agreed(communicator, "the checkpoint folder", [&] {
    if (rank == 0 && !resume && config.checkpoint.save) put_old_checkpoints_aside(config.checkpoint.folder);
  });
  CheckpointMeta meta;
  int replicas = config.sync.replicas;
  if (resume) {
    meta = resume->file.meta;
    if (replicas == 0 && config.sync.grad_accum_steps == 1) replicas = meta.replicas;
  }
  settle_run(communicator, attempt, meta.run);
  Job job;
  EngineSpec spec;
  run_alike(communicator, [&] {
    plan_phases(phases, ranks, rank, replicas);
    job = phases.front().job;
    spec = engine_spec(phases);
  });
  spec.choices = choices_for(config, job, meta);
  if (const auto device = meta.texts.find("device"); device != meta.texts.end()) spec.choices_device = device->second;
  communicator.require_equal(agreed_facts(config, phases), "start-up facts");

  std::unique_ptr<DataPipeline> data;
  run_agreed(communicator, "loading the samples", [&] {
    const ActivityScope phase(Activity::data);
    progress().doing("loading the samples");
    data = std::make_unique<DataPipeline>(phases, communicator);
  });

  progress().doing("building the network");
  const auto engine = make_engine(communicator, graph, spec);
  compare_devices(communicator, engine->backend().describe(), seating);
  if (rank == 0) show(seating);
  const auto identities = device_identities(communicator, engine->backend());
  TransportChoice transport;
  run_alike(communicator, [&] { transport = choose_transport(wish_of(config.sync), identities); });
  if (!transport.warning.empty() && rank == 0) log::warn("{}", transport.warning);
  auto collectives = make_collectives(transport, communicator, engine->backend(),
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
  MovingAverage average(*engine, *sync, config, job);
  Checkpointing checkpointing(communicator, *collectives, *engine, *sync, average, config, job, limit, attempt, state);
  std::vector<Checkpointing::Texts> data_texts;
  data_texts.reserve(phases.size());
  for (const TrainingPhase& phase : phases) data_texts.push_back(texts_of_data(phase.splits.train));
  checkpointing.tell_of_data(std::move(data_texts));
  Position position = start_position(config, job);
  run_alike(communicator, [&] {
    if (resume) {
      position = checkpointing.resume(*resume);
    } else {
      checkpointing.start();
    }
  });

  const bool slow = config.fault_kind == "slow-data" && config.fault_rank == rank;
  const double delay = slow ? config.fault_seconds : 0;
  run_agreed(communicator, "preparing batches", [&] {
    data->attach(
        {.engine = *engine, .collectives = *collectives, .communicator = communicator, .delay_seconds = delay});
  });
  std::unique_ptr<Metrics> metrics;
  run_agreed(communicator, "opening the log", [&] {
    if (rank != 0) return;
    metrics =
        std::make_unique<Metrics>(MetricsSpec{.folder = config.output.folder,
                                              .tensorboard = config.output.tensorboard,
                                              .append = resume.has_value(),
                                              .resume_step = position.step,
                                              .validated_step = checkpointing.validated_step,
                                              .ranks = ranks,
                                              .epochs = static_cast<Index>(std::ceil(config.epochs)),
                                              .k = spec.topk,
                                              .may_write = [fence = attempt.fence] { return fence.newer() == 0; }});
    describe_run(communicator, config, engine->backend().describe(), attempt.fence);
  });
  log::info("{}; {}; {} parameters", engine->plan().graph.model, engine->backend().describe(),
            cost_of(engine->plan().graph, spec.sizes.front().height, spec.sizes.front().width).parameters);
  log::info("{}", describe(job, config));
  if (phases.size() > 1) log::info("{}", describe(phases));
  log::info("samples and batches take {:.1f} MB a rank", static_cast<double>(data->memory_bytes()) / 1e6);
  log::info("device: {}; sums: {}", engine->chosen_device(), transport.reason);
  for (const std::string& warning : data_warnings(phases)) {
    if (rank == 0) log::warn("{}", warning);
  }

  if (rank == 0) {
    metrics->event(resume ? "resume" : "start",
                   {{"build", build_id()},
                    {"model", engine->plan().graph.model},
                    {"device", engine->backend().describe()},
                    {"checkpoint", resume ? resume->path : std::string()}},
                   {{"seed", static_cast<double>(config.seed)},
                    {"ranks", ranks},
                    {"replicas", job.replicas},
                    {"global_batch", static_cast<double>(job.global_batch)},
                    {"step", static_cast<double>(position.step)}});
  }
  if (state) {
    state->update([&](RunState& s) {
      s.run = attempt.record.run;
      s.epochs = static_cast<Index>(std::ceil(config.epochs));
      s.step = s.start_step = position.step;
      s.steps = job.total_steps;
      s.steps_per_epoch = job.steps_per_epoch;
      s.epoch = std::min(position.epoch + 1, s.epochs);
      if (!resume) return;
      s.checkpoint = path_from(config.output.folder, resume->path);
      s.checkpoint_step = position.step;
      s.checkpoint_time = time_of_file(resume->path);
    });
  }
  const Schedule schedule(schedule_of(config, job.peak_rate), job.steps_per_epoch);
  Foreteller foreteller(forecast_spec(rehearsal != nullptr ? *rehearsal->whole : config, graph, phases, position),
                        {.began = began, .end_time = limit.end_time, .margin = limit.margin_seconds});
  Trainer trainer({.communicator = communicator,
                   .collectives = *collectives,
                   .engine = *engine,
                   .sync = *sync,
                   .average = average,
                   .data = *data,
                   .rate_factors = rate_factors(phases),
                   .global_batches = global_batches(phases),
                   .metrics = metrics.get(),
                   .state = state,
                   .checkpointing = checkpointing,
                   .foreteller = foreteller,
                   .rehearsal = rehearsal},
                  config, job, schedule);
  const Exit code = trainer.run(position);
  if (rank == 0 && code != Exit::superseded) {
    log::info("{}", metrics->table());
    std::map<std::string, double> numbers{{"exit", static_cast<double>(code)}};
    if (checkpointing.best_top1 >= 0) numbers["best_top1"] = checkpointing.best_top1;
    metrics->event("end", {{"result", code == Exit::ok ? "finished" : "stopped"}}, numbers);
    if (checkpointing.best_top1 >= 0) log::info("best held-out accuracy: {:.2f} % top-1", checkpointing.best_top1);
  }
  return code;
}

/// The text first: the run directory may be what fails, and then what is written there may never end.
void end_failed(Supervisor& supervisor, Exit code, const std::string& message) {
  // Wrong usage is mostly seen by all ranks alike: whoever ends the job chooses who says it.
  if (code != Exit::usage) log::report_error(message);
  supervisor.end_attempt(code, message);
}

}  // namespace

Exit train(Communicator& communicator, Supervisor& supervisor, const TrainConfig& config, Rehearsal* rehearsal) {
  if (rehearsal == nullptr) heed_interrupts(communicator.rank(), "stopping after this step, with a checkpoint");
  try {
    const Exit code = run(communicator, supervisor, config, rehearsal);
    supervisor.end_attempt(code, "");
    return code;
  } catch (const AgreedError& error) {
    if (error.code == Exit::stopped)
      log::info("stopped on request ({}) before the first step; resubmit with --resume auto", name_of(stop_reason()));
    supervisor.end_attempt(error.code, log::last_error());
    return error.code;
  } catch (const Error& error) {
    end_failed(supervisor, error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    end_failed(supervisor, Exit::internal, error.what());
    throw;
  }
}

}  // namespace convoy
