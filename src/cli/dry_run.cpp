// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <algorithm>
#include <filesystem>

#include "backend/factory.hpp"
#include "checkpoint/resume.hpp"
#include "comm/agree.hpp"
#include "comm/agreed_error.hpp"
#include "config/print.hpp"
#include "config/rate_choice.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "core/wall_clock.hpp"
#include "data/evaluation.hpp"
#include "engine/memory_use.hpp"
#include "engine/weights.hpp"
#include "network/freeze.hpp"
#include "train/data_pipeline.hpp"
#include "train/setup.hpp"
#include "train/trial_run.hpp"

namespace convoy {
namespace {

constexpr double mega = 1e6, giga = 1e9;

double megabytes(Index floats) { return static_cast<double>(floats) * 4 / mega; }

/// All that a run would compute with, compiled but not allocated.
struct Sized {
  std::vector<TrainingPhase> phases;
  Splits splits;  ///< of the first phase, as job and model
  JobShape job;
  GraphSpec model;
  std::string device;
  Plan plan;
  SetLayout layout;
  Index arena_floats = 0;
  Index update_floats = 0;
  Index floats_kept = 0;  ///< of the arena, if recomputation were off; 0: it is
  HostBytes host;
  Index other_floats = 0;  ///< of the device, beside the arena
  MemoryLimit memory;
  std::string largest_batch;
};

Index held_images(const Sized& sized) {
  const JobShape& job = sized.job;
  Index images = job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count).count : 0;
  if (sized.splits.has_val) images += EvaluationBatches::share(sized.splits.val.samples, job.ranks, job.rank).count;
  return images;
}

Sized size_up(const Communicator& communicator, const TrainConfig& config, int replicas) {
  Sized sized;
  sized.phases = open_phases(config);
  plan_phases(sized.phases, communicator.size(), communicator.rank(), replicas);
  const TrainingPhase& first = sized.phases.front();
  sized.splits = first.splits;
  sized.job = first.job;
  sized.model = graph_spec(config.model, first.config.data, first.splits.train);
  EngineSpec spec = engine_spec(sized.phases);
  sized.host = host_bytes(sized.phases, communicator.node_size());
  spec.sample_bytes = sized.host.samples;
  const auto backend = make_backend({.device = config.device.device,
                                     .threads = config.device.threads,
                                     .node_rank = communicator.node_rank(),
                                     .node_size = communicator.node_size()},
                                    sized.device);
  sized.plan = make_plan(build_network(sized.phases), spec.plan);
  const bool of_host = backend->host_reads() && config.card.empty();
  check_messages(sized.job.sync, sized.plan.table, of_host ? GradientMemory::host : GradientMemory::device);
  sized.layout = backend->layout(sized.plan, spec.optimiser);
  ArenaOf arena = [&](const CompileSpec& each) { return backend->compile(sized.plan, each)->arena_floats(); };
  sized.memory = memory_of(*backend, backend->host_reads() ? communicator.node_size() : 1);
  if (!config.card.empty()) {
    const std::string card = read_card(config.card);
    arena = [&, card](const CompileSpec& each) { return arena_on_card(card, sized.plan, each); };
    sized.memory.bytes = memory_of_card(card);
    sized.memory.name = fmt::format("the {:.1f} GB of the card", sized.memory.bytes / giga);
    sized.device = fmt::format("the card of '{}'", config.card);
  }
  require_room_for_parameters(spec, sized.plan, sized.layout, sized.memory);
  sized.update_floats = config.card.empty() ? backend->compile(sized.plan, spec.optimiser)->arena_floats()
                                            : updater_floats_on_card(sized.plan, spec.optimiser);
  sized.other_floats = other_floats(spec, sized.plan, sized.layout, sized.update_floats, of_host);
  spec.arena_limit = arena_limit(sized.memory, sized.other_floats);
  sized.arena_floats = arena_floats(spec, 0, arena);
  if (spec.device.recompute != Recompute::off) {
    EngineSpec plain = spec;
    plain.device.recompute = Recompute::off;
    sized.floats_kept = arena_floats(plain, 0, arena);
  }
  if (sized.memory.bytes > 0) {
    const Index left = static_cast<Index>(sized.memory.bytes / 4) - sized.other_floats;
    sized.largest_batch = tell_largest_batch(spec, left, arena);
  }
  return sized;
}

void line(const std::string& name, const std::string& text) { write_output(fmt::format("# {:<20} {}\n", name, text)); }

void print_cost(const Sized& sized, const std::vector<std::string>& patterns) {
  const Graph& graph = sized.plan.graph;
  const Index size = sized.model.image_size;
  const std::set<std::string> frozen = find_frozen(graph, patterns);
  const Cost cost = cost_of(graph, size, size, frozen);
  line("network", fmt::format("{} for {}x{} input", graph.model, size, size));
  const Index kept = cost.parameters - trained_parameters(sized.plan.table);
  line("parameters", fmt::format("{}{}", cost.parameters, kept > 0 ? fmt::format(", {} of them frozen", kept) : ""));
  line("forward", fmt::format("{:.3f} GMAC per image = {:.3f} GFLOP (1 multiply-add = 1 MAC = 2 FLOP)", cost.macs / 1e9,
                              2 * cost.macs / 1e9));
  line("training",
       fmt::format("{:.3f} GFLOP per image (forward, data and weight gradients)", cost.training_flops / 1e9));
}

void print_memory(const Sized& sized, const TrainConfig& config) {
  const int sets = kept_sets(config, sized.job);
  const SetLayout& layout = sized.layout;
  const Index outer = outer_floats(sized.job.sync, layout),
              residuals = compression_floats(sized.job.sync, sized.plan.table),
              sums = sum_floats(sized.job.sync, layout, sized.plan.table);
  const double parameters = sets * megabytes(layout.values.count), optimiser = sets * megabytes(layout.optimiser.count),
               statistics = sets * megabytes(layout.statistics.count + layout.state.count),
               gradients = megabytes(sized.plan.table.block()), activations = megabytes(sized.arena_floats);
  const double samples = static_cast<double>(sized.host.samples) / mega,
               batches = static_cast<double>(sized.host.batches) / mega;
  line("memory per rank",
       fmt::format("{:.1f} MB (10^6 bytes; what libraries keep is not counted)",
                   parameters + optimiser + statistics + megabytes(outer + residuals + sums + sized.update_floats) +
                       gradients + activations + samples + batches));
  line("  parameters", fmt::format("{:.1f} MB in {}", parameters, counted(sets, "set")));
  line("  optimiser", fmt::format("{:.1f} MB", optimiser));
  if (outer > 0) line("  outer", fmt::format("{:.1f} MB", megabytes(outer)));
  if (residuals > 0) line("  residuals", fmt::format("{:.1f} MB to compress gradients", megabytes(residuals)));
  constexpr double shown_megabytes = 0.05;  // what replicas tell each other takes a few bytes in every run
  if (megabytes(sized.update_floats) >= shown_megabytes)
    line("  update", fmt::format("{:.1f} MB to compute an update", megabytes(sized.update_floats)));
  if (megabytes(sums) >= shown_megabytes)
    line("  sums", fmt::format("{:.1f} MB to add up what replicas contribute", megabytes(sums)));
  line("  statistics", fmt::format("{:.1f} MB", statistics));
  line("  gradients", fmt::format("{:.1f} MB in {}", gradients, counted(sized.plan.buckets.size(), "bucket")));
  line("  activations",
       fmt::format(
           "{:.1f} MB{}", activations,
           sized.floats_kept > 0 ? fmt::format(", {:.1f} MB with --recompute off", megabytes(sized.floats_kept)) : ""));
  line("  samples", fmt::format("{:.1f} MB ({}{})", samples, counted(held_images(sized), "image"),
                                samples > 0 ? "" : ", which are read when they are used"));
  line("  batches", fmt::format("{:.1f} MB, prepared ahead", batches));
  if (sized.memory.bytes > 0)
    line("largest batch",
         fmt::format("{:.1f} of {:.1f} MB are taken ({}): {}", megabytes(sized.other_floats + sized.arena_floats),
                     sized.memory.bytes / mega, sized.memory.name, sized.largest_batch));
}

/// Rank 0 speaks. `limit`: of the job, from its start; 0: none.
void print_forecast(const TrialRun& found, const TrainConfig& config, double limit) {
  TimeLeft time = found.time;
  if (config.checkpoint.save) time.left += found.checkpoint_seconds;
  line("measured", fmt::format("{}, {:.1f} s to start, a checkpoint in {:.1f} s", counted(found.steps, "step"),
                               found.start_up_seconds, found.checkpoint_seconds));
  line("forecast", describe(time).substr(std::string("forecast: ").size()));
  line("job time", describe(JobTime{.left = time.left,
                                    .start_up = found.start_up_seconds,
                                    .limit = limit,
                                    .margin = std::min(config.time_limit.margin_seconds, limit / 4),
                                    .elapsed = found.start_up_seconds,
                                    .epoch = time.epoch}));
}

/// Collective. The checkpoint from which the run would continue; nothing: it would start afresh. Damaged ones stay
/// where they are.
std::optional<FoundCheckpoint> find_resume(Communicator& communicator, const TrainConfig& config) {
  const std::string& resume = config.checkpoint.resume;
  if (resume.empty()) return std::nullopt;
  if (resume != "auto") return open_to_resume(communicator, resume);
  const std::string& folder = config.checkpoint.folder.empty() ? config.output.folder : config.checkpoint.folder;
  const std::string path = ask_first_rank(communicator, "looking for the newest checkpoint", [&]() -> std::string {
    std::error_code unknown;
    if (!std::filesystem::is_directory(folder, unknown)) return {};
    try {
      return resolve_checkpoint(folder);
    } catch (const Error&) {
      return {};
    }
  });
  if (path.empty()) return std::nullopt;
  return open_checkpoint(communicator, path);
}

}  // namespace

Exit dry_run(Communicator& communicator, Supervisor& supervisor, const TrainConfig& wanted) try {
  TrainConfig config = wanted;
  std::optional<FoundCheckpoint> resumed;
  run_alike(communicator, [&] {
    if (!config.checkpoint.weights.empty()) open_weights(communicator, config.checkpoint.weights);
    resumed = find_resume(communicator, config);
    if (resumed) require_same_frozen(config, resumed->file.meta);
  });
  int replicas = config.sync.replicas;
  if (resumed) {
    if (replicas == 0 && config.sync.grad_accum_steps == 1) replicas = resumed->file.meta.replicas;
    const auto& texts = resumed->file.meta.texts;
    if (const auto stored = texts.find("configuration"); stored != texts.end()) keep_unsaid(config, stored->second);
  }
  const double end = end_of_job(config.time_limit).time, limit = end > 0 ? end - wall_seconds() : 0;
  Exit code = communicator.agreed_exit("the dry run", [&] {
    if (communicator.rank() != 0) return;
    const Sized sized = size_up(communicator, config, replicas);
    const DatasetInfo& data = sized.splits.train;
    write_output(to_ini(config));
    line("data set", fmt::format("train: {}, {}; {}", tell_images(data), counted(data.classes, "class"),
                                 tell_validation(sized.phases.front())));
    print_cost(sized, config.frozen);
    line("device", sized.device);
    print_memory(sized, config);
    line("job", describe(sized.job, config));
    if (resumed) line("resumes from", fmt::format("{}, step {}", resumed->path, resumed->file.meta.position.step));
    if (sized.phases.size() > 1) line("phases", describe(sized.phases));
    line("global batch", fmt::format("{}", sized.job.global_batch));
    line("peak learning rate", fmt::format("{}", highest_rate(config, sized.job)));
    line("steps per epoch", fmt::format("{}", sized.job.steps_per_epoch));
  });
  if (code != Exit::ok || config.dry_run_seconds <= 0 || !config.card.empty()) return code;
  TrialRun trial(communicator, supervisor, config, config.dry_run_seconds);
  code = trial.run();
  if (code == Exit::ok && communicator.rank() == 0) print_forecast(trial, config, limit);
  return code;
} catch (const AgreedError& error) {
  return error.code;
}

}  // namespace convoy
