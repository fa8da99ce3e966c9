// SPDX-License-Identifier: Apache-2.0
#include "train/training_job.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "comm/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/hash.hpp"
#include "config/parse.hpp"
#include "config/print.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "core/wall_clock.hpp"
#include "engine/placement.hpp"
#include "engine/shared_data.hpp"
#include "sync/traffic.hpp"
#include "train/arithmetic_check.hpp"
#include "train/continuation.hpp"
#include "train/first_weights.hpp"
#include "train/injected_faults.hpp"
#include "train/loop.hpp"
#include "train/periodic_save.hpp"
#include "train/run_folder.hpp"
#include "train/start_log.hpp"
#include "train/step_trace.hpp"
#include "train/tensor_monitor.hpp"
#include "train/trial.hpp"
#include "train/validation.hpp"
#include "train/weight_check.hpp"

namespace convoy {
namespace {

/// Collective.
TrainConfig in_run_folder(Communicator& communicator, TrainConfig config) {
  run_alike(communicator, [&] { make_run_folder(communicator, config); });
  return config;
}

RunState first_state(const Attempt& attempt, int ranks, const KeptLimit& limit, const RunState& before) {
  RunState state = state_of(attempt.record);
  state.ranks = ranks;
  state.end_time = limit.end_time;
  state.checkpoint = before.checkpoint;
  state.checkpoint_step = before.checkpoint_step;
  state.checkpoint_time = before.checkpoint_time;
  state.checkpoint_seconds = before.checkpoint_seconds;
  state.checkpoint_stall = before.checkpoint_stall;
  return state;
}

/// What the attempt before left; a state that can't be read is replaced in a moment.
RunState state_before(const TrainConfig& config) {
  try {
    return find_run_state(config.output.folder).value_or(RunState{});
  } catch (const Error&) {
    return {};
  }
}

/// Collective.
StateFile* watch_attempt(const TrainingJob& job, Supervisor& supervisor) {
  const bool speaks = job.communicator.rank() == 0;
  const RunState before = speaks ? state_before(job.config) : RunState{};
  // How many attempts brought no checkpoint is counted from the newest. A run that begins anew has none.
  const RunState counts = job.config.checkpoint.resume.empty() ? RunState{} : before;
  supervisor.watch_attempt(job.communicator,
                           speaks ? first_state(job.attempt, job.communicator.size(), job.limit, counts) : RunState{},
                           before);
  return supervisor.state();
}

/// Collective. Where the ranks run; the number of threads decides bits and stands in the configuration that is hashed
/// and kept.
JobPlacement place_ranks(TrainingJob& job) {
  JobPlacement placement = place_ranks(job.communicator, job.config.device);
  job.config.device.threads = placement.threads;
  SyncConfig& sync = job.config.sync;
  if (!sync.group.is_on() || sync.group.replicas > 0) return placement;
  const Communicator& ranks = job.communicator;
  const int replicas = sync.replicas > 0 ? sync.replicas : ranks.size() * sync.grad_accum_steps;
  sync.group.replicas = replicas_of_host(ranks.hosts(), replicas);
  return placement;
}

/// Collective. The collectives among the ranks of a host; null if nothing is summed there.
std::unique_ptr<Communicator> join_group(const TrainingJob& job) {
  if (!job.shape.sync.group.is_on()) return nullptr;
  return job.communicator.part(group_of_rank(job.shape.sync), job.config.sync.deadline);
}

/// One replica sums nothing over ranks.
Index largest_wire_sum(const TrainingJob& job) {
  if (job.shape.sync.replicas == 1) return 0;
  return largest_sum(traffic_of(job.shape.sync, job.engine->plan(), job.engine->layout()), job.shape.sync.wire);
}

CollectivesSpec sums_of(const TrainingJob& job, int replicas, Wire wire) {
  return {.replicas = replicas,
          .reproducible = job.shape.sync.reproducible,
          .max_count = std::max(job.engine->plan().table.block(), job.engine->layout().count()),
          .wire = wire,
          .max_wire_count = wire == Wire::fp32 ? 0 : largest_wire_sum(job),
          .gathers = job.shape.sync.compression.is_on()};
}

/// Collective. What can't travel is known once there is a plan. A GPU on any rank makes all ranks fail.
std::unique_ptr<Sync> start_sync(const TrainingJob& job) {
  Engine& engine = *job.engine;
  std::int64_t far = engine.backend().host_reads() ? 0 : 1;
  if (job.shape.sync.compression.is_on()) job.communicator.maximum(std::span(&far, 1), "devices that hosts can't read");
  const GradientMemory memory = far == 0 ? GradientMemory::host : GradientMemory::device;
  run_alike(job.communicator, [&] { check_messages(job.shape.sync, engine.plan().table, memory); });
  return make_sync(job.shape.sync, {.backend = engine.backend(),
                                    .collectives = *job.collectives,
                                    .plan = engine.plan(),
                                    .layout = engine.layout(),
                                    .gradients = engine.gradients(),
                                    .group = job.group_collectives.get()});
}

/// Collective. Among the ranks of a group.
std::unique_ptr<Collectives> make_group_sums(const TrainingJob& job) {
  if (job.group == nullptr) return nullptr;
  TransportChoice transport = job.transport;
  if (job.group->size() == 1) transport.transport = Transport::mpi;  // which then adds on the device, and sends nothing
  return make_collectives(transport, *job.group, job.engine->backend(),
                          sums_of(job, job.shape.sync.group.replicas, Wire::fp32));
}

/// Collective. Rank 0 reads headers, labels and shapes, so that a thousand ranks read no more of them than one.
std::vector<SplitHeaders> share_headers(const TrainingJob& job) {
  if (job.config.data.synthetic) return read_all_headers(job.config);
  std::vector<SplitHeaders> headers;
  run_agreed(job.communicator, "opening the data set", [&] {
    if (job.communicator.rank() == 0) headers = read_all_headers(job.config);
  });
  headers.resize(data_phases(job.config).size());
  for (SplitHeaders& own : headers) {
    std::int64_t has_val = own.has_val ? 1 : 0;
    job.communicator.broadcast(std::as_writable_bytes(std::span(&has_val, 1)), 0, "whether there is a val split");
    own.has_val = has_val == 1;
    share(job.communicator, own.train);
    share(job.communicator, own.labels);
    if (!own.has_val) continue;
    share(job.communicator, own.val);
    share(job.communicator, own.val_groups);
  }
  return headers;
}

/// Collective.
std::vector<TrainingPhase> open_data(const TrainingJob& job) {
  std::vector<TrainingPhase> phases;
  progress().doing("opening the data set");
  std::vector<SplitHeaders> headers = share_headers(job);
  run_agreed(job.communicator, "opening the data set", [&] { phases = open_phases(job.config, std::move(headers)); });
  const bool has_val = phases.front().splits.has_val;
  job.communicator.require_equal(has_val ? "there" : "missing", "the val split");  // before it decides who goes on
  run_alike(job.communicator, [&] {
    if (has_val || (job.config.patience == 0 && job.config.optimiser.schedule.decay != Decay::plateau)) return;
    fail(
        Exit::usage,
        "'{}' has no val split, and --patience and --lr-schedule plateau follow the validations; give --val-data DIR, or drop them",
        folder_of(job.config.data, "val"));
  });
  if (job.communicator.rank() == 0 && !has_val && !job.config.skip_eval)
    log::warn(
        "'{}' has no val split: nothing is evaluated, and there will be no best.h5; give --val-data DIR, or --skip-eval if you want no validation",
        folder_of(job.config.data, "val"));
  return phases;
}

/// Collective.
Graph build_network(const TrainingJob& job) {
  Graph graph;
  run_alike(job.communicator, [&] { graph = build_network(job.phases); });
  return graph;
}

std::string agreed_facts(const TrainConfig& config, const std::vector<TrainingPhase>& phases) {
  std::string text = fmt::format("version {}, configuration {}", build_id(), configuration_hash(config));
  for (const TrainingPhase& phase : phases) {
    const DatasetInfo &train = phase.splits.train, &val = phase.splits.val;
    text += fmt::format(", train {:016x} of {} samples, val {:016x} of {}, {} steps per epoch", train.digest,
                        train.samples, val.digest, val.samples, phase.job.steps_per_epoch);
  }
  return text;
}

/// Collective. Fills the phases' plans.
JobShape plan_training(TrainingJob& job) {
  int replicas = job.config.sync.replicas;
  if (job.resume && replicas == 0 && job.config.sync.grad_accum_steps == 1) replicas = job.resume->file.meta.replicas;
  run_alike(job.communicator,
            [&] { plan_phases(job.phases, job.communicator.size(), job.communicator.rank(), replicas); });
  return job.phases.front().job;
}

/// Collective.
EngineSpec specify_engine(const TrainingJob& job) {
  EngineSpec spec;
  run_alike(job.communicator, [&] {
    spec = engine_spec(job.phases);
    spec.sample_bytes = host_bytes(job.phases, job.communicator.node_size()).samples;
  });
  if (job.resume) {
    const CheckpointMeta& meta = job.resume->file.meta;
    spec.choices = choices_for(job.config, job.shape, meta);
    if (const auto device = meta.texts.find("device"); device != meta.texts.end()) spec.choices_device = device->second;
  }
  job.communicator.require_equal(agreed_facts(job.config, job.phases), "start-up facts");
  return spec;
}

/// Collective.
std::unique_ptr<DataPipeline> load_data(const TrainingJob& job) {
  std::unique_ptr<DataPipeline> data;
  // The slowest may read for much longer than the fastest: from a disk that it shares, or behind others that copy.
  const auto patient = patient_ranks(job.communicator, job.config.sync.deadline);
  run_agreed(*patient, "loading the samples", [&] {
    const ActivityScope loading(Activity::data);
    progress().doing("loading the samples");
    data = std::make_unique<DataPipeline>(job.phases, job.communicator);
  });
  return data;
}

/// Collective. Fills the devices of the ranks. Other instruction sets give other bits: unlike nodes are allowed, and
/// said.
void compare_devices(Communicator& communicator, const std::string& mine, JobPlacement& placement) {
  const auto all = communicator.all_gather(mine, "devices of the ranks");
  for (std::size_t r = 0; r < all.size(); ++r) placement.ranks[r].device = all[r];
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& device) { return device != all[0]; });
  if (other == all.end()) return;
  log::info("ranks compute on different devices ('{}', '{}'): runs on other nodes will not repeat these bits", all[0],
            *other);
}

/// Collective.
std::unique_ptr<Engine> build_engine(TrainingJob& job) {
  progress().doing("building the network");
  auto engine = make_engine(job.communicator, job.graph, job.engine_spec);
  compare_devices(job.communicator, engine->backend().describe(), job.placement);
  if (job.communicator.rank() == 0) log_placement(job.placement);
  return engine;
}

/// Collective.
TransportChoice choose_sums(const TrainingJob& job) {
  const SyncConfig& sync = job.config.sync;
  const RankDevices devices = find_devices(job.communicator, job.engine->backend());
  TransportChoice choice;
  run_alike(job.communicator, [&] {
    choice =
        choose_transport({.backend = sync.backend,
                          .in_tree = adds_in_tree(Transport::mpi, job.shape.sync.reproducible, job.shape.sync.wire),
                          .memory = sync.cuda_aware ? MpiMemory::device : MpiMemory::host},
                         devices);
  });
  if (!choice.warning.empty() && job.communicator.rank() == 0) log::warn("{}", choice.warning);
  return choice;
}

/// --start-epoch: earlier epochs count as done.
Position start_position(const TrainConfig& config, const JobShape& job) {
  const Index step = job.timeline.step(config.start_epoch), epoch = job.timeline.epoch_of(step);
  return {.epoch = epoch, .step_in_epoch = step - job.timeline.first_step(epoch), .step = step};
}

/// A run that has already passed the end that it is given now stays as it is.
void require_within(const TrainingJob& job, const Position& position) {
  if (!job.resume || position.step <= job.shape.total_steps) return;
  fail(
      Exit::usage,
      "the run is already beyond --epochs {} ({}): '{}' has done {}, in epoch {}; give more --epochs to continue, or go "
      "back to an earlier checkpoint with --resume FILE",
      job.config.epochs, counted(job.shape.total_steps, "step"), job.resume->path, counted(position.step, "step"),
      position.step_in_epoch > 0 ? position.epoch + 1 : position.epoch);
}

/// Collective. Loads the checkpoint to continue from, or the first weights.
LoopState begin_state(TrainingJob& job) {
  LoopState state;
  state.position = start_position(job.config, job.shape);
  run_alike(job.communicator, [&] {
    if (job.resume) {
      state.position = job.checkpointing.resume(*job.resume);
    } else {
      load_first_weights(job);
    }
  });
  run_alike(job.communicator, [&] { require_within(job, state.position); });
  run_agreed(job.communicator, "the line of checkpoints", [&] {
    if (job.communicator.rank() == 0) job.checkpointing.leave_other_lines(job.resume);
  });
  const Index total = job.shape.total_steps, step = state.position.step;
  state.last_step = total;
  const TrainConfig& config = job.config;
  if (config.run_epochs > 0)
    state.last_step =
        job.shape.timeline.step(std::min(config.epochs, job.shape.timeline.epochs(step) + config.run_epochs));
  if (state.last_step < total) state.limit = fmt::format("--run-epochs {}", config.run_epochs);
  if (config.max_steps > 0 && config.max_steps < state.last_step - step) {
    state.last_step = step + config.max_steps;
    state.limit = fmt::format("--max-steps {}", config.max_steps);
  }
  return state;
}

/// Collective. From here on there are batches.
void begin_data(TrainingJob& job) {
  const bool slow = job.config.fault_kind == "slow-data" && job.config.fault_rank == job.shape.rank;
  run_agreed(job.communicator, "preparing batches", [&] {
    job.data->attach({.engine = *job.engine,
                      .collectives = *job.collectives,
                      .communicator = job.communicator,
                      .delay_seconds = slow ? job.config.fault_seconds : 0});
  });
}

/// Collective.
std::unique_ptr<Metrics> open_metrics(const TrainingJob& job) {
  std::unique_ptr<Metrics> metrics;
  run_agreed(job.communicator, "opening the log", [&] {
    if (job.shape.rank != 0) return;
    MetricsSpec spec{.folder = job.config.output.folder,
                     .tensorboard = job.config.output.tensorboard,
                     .append = job.resume.has_value(),
                     .resume_step = job.state.position.step,
                     .begin_step = job.state.position.step,
                     .validated_step = job.checkpointing.validated_step,
                     .ranks = job.shape.ranks,
                     .epochs = static_cast<Index>(std::ceil(job.config.epochs)),
                     .k = job.engine_spec.topk,
                     .configuration = to_ini_of_words(job.config),
                     .hyperparameters = hyperparameters(job.config),
                     .may_write = [fence = job.attempt.fence] { return fence.newer() == 0; }};
    if (job.resume) {
      const Position& at = job.resume->file.meta.position;
      spec.resume_step = at.step;
      spec.resume_epoch = at.step_in_epoch > 0 ? at.epoch + 1 : at.epoch;
      if (job.checkpointing.validated_step == job.state.position.step) spec.validated_step = at.step;
    }
    metrics = std::make_unique<Metrics>(spec);
    describe_run(job.communicator, job.config, job.engine->backend().describe(), job.attempt.fence);
  });
  return metrics;
}

/// Of a run that is complete. `why_early`: empty where all its epochs are done.
std::string tell_end(const Position& at, double epochs, const std::string& why_early) {
  if (!why_early.empty())
    return fmt::format("{} at epoch {}, step {}; raise that option to continue", why_early,
                       at.step_in_epoch > 0 ? at.epoch + 1 : at.epoch, at.step);
  return fmt::format("the run is at the end of {}, step {}; raise --epochs to continue",
                     at.step_in_epoch > 0 ? fmt::format("its {} epochs", epochs) : fmt::format("epoch {}", at.epoch),
                     at.step);
}

}  // namespace

TrainingJob::TrainingJob(Communicator& ranks, Supervisor& supervisor, const TrainConfig& wanted, Trial* of_trial)
    : communicator(ranks),
      trial(of_trial),
      began(wall_seconds()),
      config(in_run_folder(ranks, wanted)),
      attempt(
          supervisor.begin_attempt(ranks, {.run_folder = config.output.folder,
                                           .checkpoint_folder = config.checkpoint.save ? config.checkpoint.folder : "",
                                           .take_over = config.take_over,
                                           .wait_seconds = config.wait_for_other})),
      limit(keep_time_limit(ranks, config.time_limit)),
      state_file(watch_attempt(*this, supervisor)),
      placement(place_ranks(*this)),
      phases(open_data(*this)),
      graph(build_network(*this)),
      resume(find_resume(*this)),
      shape(plan_training(*this)),
      engine_spec(specify_engine(*this)),
      data(load_data(*this)),
      engine(build_engine(*this)),
      transport(choose_sums(*this)),
      collectives(with_faults(
          make_collectives(transport, ranks, engine->backend(), sums_of(*this, shape.replicas, shape.sync.wire)),
          config, engine->backend())),
      group(join_group(*this)),
      group_collectives(make_group_sums(*this)),
      sync(start_sync(*this)),
      average(*engine, *sync, config, shape),
      spikes(config),
      optimiser(config, phases, engine->backend(), average),
      checkpointing(*this),
      state(begin_state(*this)),
      metrics(open_metrics(*this)),
      timer(*collectives, group_collectives.get()),
      in_flight(engine->backend(), *collectives),
      report(*this),
      vote(*this),
      training_log(*this),
      estimate(work_ahead(trial != nullptr && trial->whole() != nullptr ? *trial->whole() : config, graph, phases,
                          state.position),
               {.began = began, .end_time = limit.end_time, .margin = limit.margin_seconds}) {
  begin_data(*this);
  log_start(*this);
}

void TrainingJob::wait_for_device(const char* what) {
  const StepTimer::Scope timed(timer, StepPart::device);
  in_flight.launched(what);
}

Exit TrainingJob::run() try {
  InjectedFaults faults(*this);
  ArithmeticCheck arithmetic(*this);
  WeightCheck weights(*this);
  TensorMonitor monitor(*this);
  Validation validation(*this);
  PeriodicSave save(*this);
  std::vector<Observer*> list{&report, &faults, &arithmetic, &weights, &monitor, &vote, &training_log};
  if (trial != nullptr) {
    trial->begin(*this);
    list.push_back(trial);
  }
  StepTrace steps(*this);
  spikes.attach(*this);
  list.insert(list.end(), {&spikes, &validation, &save, &steps});

  state.working = state.position;
  const std::string why_early = validation.why_run_ends();
  state.ends_early = !why_early.empty();
  const bool complete = state.ends_early || state.position.step >= shape.total_steps;
  if (complete && !validation.is_missing(state) && checkpointing.from_last) {
    log::info("nothing is left to do: {}", tell_end(state.position, config.epochs, why_early));
    return end(Exit::ok);
  }
  // Stopped at the end of an epoch, before its validation.
  if (validation.is_due(state) && validation.is_missing(state)) validation.run(state);
  steps.start(state);
  run_loop(*this, Observers(std::move(list)));
  steps.end();
  arithmetic.tell();
  if (!state.stopped() && validation.is_missing(state)) validation.run(state);
  return end(finish(validation.is_missing(state) ? LastValidation::is_missing : LastValidation::is_done));
} catch (const Error& e) {
  // Whatever fails in a run that continues elsewhere (files that are gone, ranks that have left) fails because of that.
  // Not asked where a file system may have died.
  if (e.code() != Exit::communication) attempt.fence.check();
  fail(e.code(), "{} (at epoch {}, step {}, {})", e.what(), state.working.epoch + 1, state.working.step + 1,
       name_of(progress().activity()));
}

Exit TrainingJob::finish(LastValidation validation) {
  const Position& at = state.position;
  if (state.superseded_by > 0) return leave_to_newer();
  const bool finished = (at.step >= state.last_step || state.ends_early) && validation == LastValidation::is_done;
  const auto saving = real_clock().now();
  const Exit saved = save_last();
  if (saved == Exit::superseded) return leave_to_newer();
  if (saved != Exit::ok) return saved;
  if (trial != nullptr) trial->take(estimate, at.step, seconds_since(saving));
  if (finished) {
    if (is_part()) report.tell_limit(state);
    return Exit::ok;
  }
  log::info("stopped on request ({}) at epoch {}, step {}; {}", name_of(state.stop), at.data_epoch() + 1, at.step,
            how_to_continue(config, shape.ranks));
  return Exit::stopped;
}

bool TrainingJob::is_part() const { return state.position.step < shape.total_steps && !state.ends_early; }

Exit TrainingJob::save_last() {
  report.tell(RunStage::save, state);
  if (!config.checkpoint.save) return Exit::ok;
  if (state.trouble == Exit::ok) checkpointing.save("last", state.position);
  const Exit code = checkpointing.finish();
  if (code != Exit::ok && code != Exit::superseded && shape.rank == 0) {
    log::report_error(fmt::format(
        "{} at epoch {}, step {}; make room or repair the file system, then continue from the newest checkpoint with --resume auto",
        state.trouble == Exit::ok ? "the last checkpoint could not be saved"
                                  : "several checkpoints in a row could not be saved: leaving",
        state.position.data_epoch() + 1, state.position.step));
  }
  return code;
}

Exit TrainingJob::leave_to_newer() const {
  if (shape.rank == 0) {
    const Index newer = state.superseded_by > 0 ? state.superseded_by : attempt.fence.newer();
    log::report_error(fmt::format(
        "attempt {} continues this run (this is attempt {}): leaving at epoch {}, step {} without a checkpoint; don't submit this job again",
        newer, attempt.fence.number(), state.position.data_epoch() + 1, state.position.step));
  }
  return Exit::superseded;
}

Exit TrainingJob::end(Exit code) const {
  if (code == Exit::superseded) return code;
  const bool may_skip = config.data.on_corrupt == OnCorrupt::skip;
  const Index skipped = may_skip ? data->skipped(communicator) : 0;
  if (metrics == nullptr) return code;
  if (metrics->has_epochs()) log::info("{}", metrics->table());
  std::map<std::string, EventNumber> numbers{{"exit", static_cast<Index>(code)}};
  if (checkpointing.best_top1 >= 0) numbers["best_top1"] = checkpointing.best_top1;
  if (spikes.undone_steps() > 0) numbers["undone_steps"] = spikes.undone_steps();
  if (may_skip) numbers["skipped_samples"] = skipped;
  std::map<std::string, std::string> texts{{"result", "stopped"}};
  if (code == Exit::stopped) {
    texts["stop"] = name_of(state.stop);
  } else if (code == Exit::ok && is_part()) {
    texts["stop"] = state.limit;
  } else if (code == Exit::ok) {
    texts["result"] = "finished";
  }
  metrics->event("end", texts, numbers);
  if (skipped > 0)
    log::warn("{}: {} stood in (--on-corrupt skip)", counted(skipped, "damaged sample"),
              skipped == 1 ? "a neighbour" : "neighbours");
  if (checkpointing.best_top1 >= 0) log::info("best held-out accuracy: {:.2f} % top-1", checkpointing.best_top1);
  return code;
}

}  // namespace convoy
