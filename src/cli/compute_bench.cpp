// SPDX-License-Identifier: Apache-2.0
#include "cli/compute_bench.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <set>
#include <thread>

#include "cli/bench.hpp"
#include "cli/output_file.hpp"
#include "cli/step_conditions.hpp"
#include "comm/agreed_error.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "io/file.hpp"
#include "network/freeze.hpp"
#include "scaling/machine.hpp"

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
  spec.plan.frozen = config.frozen;
  spec.sizes = {{.input = input, .height = model.image_size, .width = model.image_size}};
  if (config.forward) {
    spec.sizes[0].eval_size = config.batch;
    spec.sizes[0].eval_input = input;
  } else {
    spec.sizes[0].train_sizes = {config.batch};
  }
  return spec;
}

bool sums_gradients(const BenchConfig& config) { return config.gradients && !config.forward; }

}  // namespace

ComputeBench::ComputeBench(Communicator& communicator, const BenchConfig& config)
    : model_(with_usual_input(config.model, config.classes, config.channels, config.data.image_size)),
      engine_(make_engine(communicator, build_graph(model_), engine_spec(config, model_, communicator.size()))),
      rank_(communicator.rank()),
      batch_(config.batch),
      forward_(config.forward) {
  make_images(rank_);
  Engine& engine = *engine_;
  const TransportChoice choice = choose_transport({.backend = config.backend == "all" ? "auto" : config.backend,
                                                   .in_tree = config.reproducible,
                                                   .memory = config.cuda_aware ? MpiMemory::device : MpiMemory::host},
                                                  find_devices(communicator, engine.backend()));
  transport_ = choice.reason;
  collectives_ = make_collectives(choice, communicator, engine.backend(),
                                  {.replicas = communicator.size(),
                                   .reproducible = config.reproducible,
                                   .max_count = std::max(engine.plan().table.block(), engine.layout().count())});
  if (sums_gradients(config)) {
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
  step_samples_ = sums_gradients(config) ? batch_ * communicator.size() : batch_;
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

void ComputeBench::step(Index number, Launch launch) {
  Engine& engine = *engine_;
  Backend& backend = engine.backend();
  backend.set_step({.learning_rate = 1e-3F, .seed = 1, .step = number, .options = {{0.9}}});
  const Batch batch{.samples = samples_,
                    .images = resident_ >= 0 ? nullptr : pixels_.data(),
                    .resident = resident_,
                    .valid_count = batch_,
                    .replica = sync_ ? rank_ : 0,
                    .scale = 1.F / static_cast<float>(step_samples_),
                    .norm_scale = 1.F / static_cast<float>(batch_)};
  if (forward_) {
    program().feed(batch);
    const auto pass = [&] { program().launch(0, set()); };
    if (launch == Launch::replayed)
      backend.replay(ReplayKey::of_evaluation(0, 0, set()).hash(), pass);
    else
      pass();
    in_flight_->launched("an earlier pass");
    return;
  }
  const ReplayKey key{.samples = batch_, .replica = rank_};
  engine.feed(key, batch);
  const auto body = [&] {
    for (std::size_t stage = 0; stage < engine.stages().size(); ++stage) {
      if (launch == Launch::eager)
        engine.training(batch_).launch(stage, set());  // Engine::launch would capture it
      else
        engine.launch(key, stage, set());
      if (sync_) sync_->ready(stage, engine.stages()[stage], rank_);
    }
    if (sync_)
      sync_->replica_done(rank_, batch_, engine.updater());
    else
      engine.updater().launch(set(), engine.gradients());
  };
  if (sync_) sync_->begin_replica(rank_, batch_, step_samples_);
  if (launch == Launch::replayed && (!sync_ || sync_->capturable(rank_)))
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
  if (counters.samples > 0) loss_ = counters.sums[Counter::loss] / static_cast<double>(counters.samples);
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
  steps_done_ = warmup + steps;
  return times;
}

StepProfile ComputeBench::profile(Index steps, Precision precision) {
  Backend& backend = engine_->backend();
  StepProfile profile(program().parts(), backend.measure_ceilings({.precision = precision}), batch_);
  program().time_parts();
  for (Index i = 0; i < steps; ++i) {
    const auto begin = real_clock().now();
    step(steps_done_++, Launch::eager);
    settle();
    profile.add(program().part_seconds(), seconds_since(begin));
  }
  return profile;
}

namespace {

void write_csv(const std::string& path, const std::string& text) {
  try {
    replace_text_file(path, text);
  } catch (const Error& e) {
    fail(Exit::data, "{}; or choose another --csv", e.what());
  }
}

/// Adds the step's time to the description, in place of one that was measured in the same way.
void describe_step(const Communicator& communicator, const BenchConfig& config, const ComputeBench& bench,
                   const std::string& model, double mean, double fastest) {
  const std::string path = link_target(config.machine);
  Machine machine = machine_to_extend(path, config.machine_name);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const bool shares_cores = bench.engine().backend().host_reads();
  machine.cores_per_host = shares_cores ? cores : 0;
  const StepTime step{.model = model,
                      .precision = name_of(config.device.precision),
                      .image_size = bench.model().image_size,
                      .batch = config.batch,
                      .ranks_per_host = communicator.node_size(),
                      .threads = shares_cores ? bench.engine().threads() : 0,
                      .conditions = conditions_of(config.device),
                      .seconds = {.value = mean, .error = (mean - fastest) / mean},
                      .measured = true};
  std::erase_if(machine.steps, [&](const StepTime& other) { return is_same_step(other, step); });
  machine.steps.push_back(step);
  write_machine(path, machine);
  log::info("the step's time is in '{}'", config.machine);
}

}  // namespace

Exit bench_compute(Communicator& communicator, const BenchConfig& config) {
  const std::string csv = link_target(config.csv);
  std::string wrong;
  if (config.forward && !config.machine.empty())
    wrong = "--machine takes the time of a training step; drop --forward";
  else if (config.forward && config.device.recompute != Recompute::off)
    wrong = "--recompute has no effect on --forward, which keeps nothing for backward; drop one of them";
  else if (!config.machine.empty() && config.gradients && communicator.size() > 1)
    wrong = "--machine takes the time of a step without all-reduce; give --no-gradients";
  if (!wrong.empty()) {
    if (communicator.rank() == 0) log::report_error(wrong);
    return Exit::usage;
  }
  ComputeBench bench(communicator, config);
  Engine& engine = bench.engine();
  const GraphSpec& model = bench.model();
  const BenchTimes times = bench.run(communicator, config.warmup, config.steps);
  const auto rates = of_all_ranks(communicator, static_cast<double>(config.batch) / times.mean, "images per second");
  double slowest[3] = {times.mean, times.fastest, times.wait};
  communicator.maximum(std::span<double>(slowest), "time of the steps");
  double cpu = times.cpu;
  communicator.sum(std::span<double>(&cpu, 1), "time of the cores");
  double total = 0;
  for (const double rate : rates) total += rate;
  const Cost cost =
      cost_of(engine.plan().graph, model.image_size, model.image_size, find_frozen(engine.plan().graph, config.frozen));
  log::info("{}, {}x{}x{}, {} x batch {}, {}; {}", engine.plan().graph.model, model.channels, model.image_size,
            model.image_size, counted(communicator.size(), "rank"), config.batch,
            config.forward     ? "forward alone"
            : config.gradients ? "gradients summed over the ranks"
                               : "ranks alone",
            engine.chosen_device());
  if (!engine.backend().host_reads())
    log::info("{}; graph launches: {:.2f} per step; allocations in the timed steps: {}; all-reduce: {}",
              engine.backend().describe(), times.graph_launches, times.allocations, bench.transport());
  log::info("activations: {:.1f} MB per rank", static_cast<double>(bench.program().arena_floats()) * 4 / 1e6);
  if (const std::string text = engine.recomputation(); !text.empty()) log::info("recomputation: {}", text);
  log::info("images/s: {:.2f} in all; per rank: {}", total, print_ranks(rates));
  if (engine.backend().host_reads()) {
    log::info("per core: {:.2f} images/s (by {:.2f} s of CPU time)",
              static_cast<double>(config.batch * communicator.size()) / std::max(cpu, 1e-9),
              cpu * static_cast<double>(config.steps));
  }
  const std::string wait =
      config.forward ? "" : fmt::format("; waiting for the all-reduce {:.2f} ms", slowest[2] * 1e3);
  log::info("step: mean {:.2f} ms, min {:.2f} ms of {} steps{} (slowest rank)", slowest[0] * 1e3, slowest[1] * 1e3,
            config.steps, wait);
  const double flops = config.forward ? 2 * cost.macs : cost.training_flops;
  log::info("{}: {:.1f} GFLOP/s in all ({:.3f} GFLOP per image); loss {:.4f}", config.forward ? "forward" : "training",
            total * flops / 1e9, flops / 1e9, bench.loss());
  if (config.profile) {
    const StepProfile profile = bench.profile(config.steps, config.device.precision);
    if (communicator.rank() == 0) {
      std::cout << profile.text() << std::flush;
      if (!csv.empty()) write_csv(csv, profile.csv());
    }
  }
  if (!config.machine.empty() && communicator.rank() == 0)
    describe_step(communicator, config, bench, engine.plan().graph.model, slowest[0], slowest[1]);
  return Exit::ok;
}

namespace {

struct Measured {
  int ranks = 0, hosts = 0;
  Index batch = 0;                         ///< of a rank
  double step = 0, fastest = 0, wait = 0;  ///< seconds, of the slowest rank
  std::string device, transport;
  double images_per_second() const { return step > 0 ? static_cast<double>(batch * ranks) / step : 0; }
};

/// 1, 2, 4 ... and all.
std::vector<int> counts_up_to(int ranks) {
  std::vector<int> counts;
  for (int count = 1; count < ranks; count *= 2) counts.push_back(count);
  counts.push_back(ranks);
  return counts;
}

/// Collective over the ranks of `part`.
Measured measure(Communicator& part, const BenchConfig& config) {
  ComputeBench bench(part, config);
  const BenchTimes times = bench.run(part, config.warmup, config.steps);
  double slowest[3] = {times.mean, times.fastest, times.wait};
  part.maximum(std::span<double>(slowest), "time of the steps");
  return {.ranks = part.size(),
          .hosts = static_cast<int>(std::set<std::string>(part.hosts().begin(), part.hosts().end()).size()),
          .batch = config.batch,
          .step = slowest[0],
          .fastest = slowest[1],
          .wait = slowest[2],
          .device = bench.engine().chosen_device(),
          .transport = bench.transport().substr(0, bench.transport().find(' '))};
}

class ScalingTable {
 public:
  ScalingTable(const std::string& path, const std::string& model) : path_(link_target(path)), model_(model) {}

  /// Efficiency is that of the speed of one rank, or of the fewest there were, times the ranks.
  void add(const Measured& row) {
    if (csv_.empty()) {
      csv_ =
          "model,ranks,hosts,batch,global_batch,step_ms,min_ms,wait_ms,images_per_sec,images_per_sec_per_rank,speedup,efficiency,transport\n";
      first_ = row;
      log::info("{}, {}", model_, row.device);
      log::info("{:>6} {:>6} {:>7} {:>10} {:>10} {:>11} {:>11} {:>9} {:>11}", "ranks", "hosts", "batch", "step ms",
                "wait ms", "images/s", "per rank", "speed-up", "efficiency");
    }
    const double rate = row.images_per_second(), speedup = rate / first_.images_per_second();
    const double efficiency = speedup * first_.ranks / row.ranks;
    log::info("{:>6} {:>6} {:>7} {:>10.2f} {:>10.2f} {:>11.1f} {:>11.1f} {:>9.2f} {:>10.1f}%", row.ranks, row.hosts,
              row.batch, row.step * 1e3, row.wait * 1e3, rate, rate / row.ranks, speedup, efficiency * 100);
    csv_ += fmt::format("{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.3f},{:.3f},{:.4f},{:.4f},{}\n", model_, row.ranks,
                        row.hosts, row.batch, row.batch * row.ranks, row.step * 1e3, row.fastest * 1e3, row.wait * 1e3,
                        rate, rate / row.ranks, speedup, efficiency, row.transport);
    write();
  }

 private:
  /// Writes the table after every row: a job that is cut off leaves what it has.
  void write() const {
    if (!path_.empty()) write_csv(path_, csv_);
  }

  std::string path_, model_, csv_;
  Measured first_;
};

}  // namespace

Exit bench_scaling(Communicator& whole, const BenchConfig& config) {
  ScalingTable table(config.csv, config.model.model);
  for (const int ranks : counts_up_to(whole.size())) {
    BenchConfig part_config = config;
    if (config.strong) {
      if (config.batch % ranks != 0) {
        if (whole.rank() == 0)
          log::warn("--strong: {} images can't be dealt evenly to {} ranks; left out", config.batch, ranks);
        continue;
      }
      part_config.batch = config.batch / ranks;
    }
    const auto part = whole.first_ranks(ranks, config.deadline);
    std::array<std::int64_t, 1> code{static_cast<int>(Exit::ok)};
    try {
      if (part) {
        const Measured row = measure(*part, part_config);
        if (whole.rank() == 0) table.add(row);
      }
    } catch (const AgreedError& error) {  // of the ranks of the part, one of which has logged why
      code[0] = static_cast<int>(error.code);
    }
    // Those without work sleep here, and hear whether to leave.
    whole.maximum(code, "end of a measurement");
    if (code[0] != static_cast<int>(Exit::ok)) return static_cast<Exit>(code[0]);
  }
  return Exit::ok;
}

}  // namespace convoy
