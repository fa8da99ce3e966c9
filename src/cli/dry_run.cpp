// SPDX-License-Identifier: Apache-2.0
#include "cli/dry_run.hpp"

#include <algorithm>

#include "backend/factory.hpp"
#include "config/print.hpp"
#include "data/evaluation.hpp"
#include "train/data.hpp"
#include "train/job.hpp"

namespace convoy {
namespace {

constexpr double mega = 1e6;

double megabytes(Index floats) { return static_cast<double>(floats) * 4 / mega; }

/// All that a run would compute with, compiled but not allocated.
struct Sized {
  DatasetInfo train, val;
  bool has_val = false;
  Job job;
  GraphSpec model;
  std::string device;
  Plan plan;
  SetLayout layout;
  Index arena_floats = 0;
};

OptimiserSpec optimiser_spec(const OptimiserConfig& config) {
  return {.rule = config.rule, .clip_norm = static_cast<float>(config.clip_norm)};
}

PlanSpec plan_spec(const TrainConfig& config, int replicas) {
  return {.replicas = replicas,
          .bucket_floats = std::max<Index>(16, static_cast<Index>(config.sync.bucket_mb * 262144)),
          .weight_decay = static_cast<float>(config.optimiser.weight_decay),
          .norm_weight_decay = static_cast<float>(config.optimiser.norm_weight_decay),
          .bias_weight_decay = static_cast<float>(config.optimiser.bias_weight_decay),
          .sync_bn = config.sync.sync_bn};
}

/// The largest arena of the programs that the run would compile.
Index arena_of(Backend& backend, const Sized& sized, const TrainConfig& config) {
  const AugmentSpec augment = augment_spec(config.data, sized.train, config.seed, Use::training);
  CompileSpec spec;
  spec.height = augment.height;
  spec.width = augment.width;
  spec.precision = config.device.precision;
  spec.input = input_spec(config.data, sized.train);
  spec.options = config.device.options;
  Index arena = 0;
  for (const Index samples : batch_sizes(sized.job.order)) {
    spec.samples = samples;
    arena = std::max(arena, backend.compile(sized.plan, spec)->arena_floats());
  }
  if (sized.has_val) {
    spec.samples =
        std::clamp<Index>(EvaluationBatches::share(sized.val.samples, sized.job.ranks, 0).count, 1, config.eval_batch);
    spec.mode = Mode::evaluate;
    arena = std::max(arena, backend.compile(sized.plan, spec)->arena_floats());
  }
  return arena;
}

Sized size_up(const Communicator& communicator, const TrainConfig& config) {
  Sized sized;
  sized.train = open_split(config.data, "train");
  sized.has_val = !config.skip_eval && split_exists(config.data, "val");
  if (sized.has_val) sized.val = open_split(config.data, "val");
  sized.job = plan_job(config, sized.train.samples, communicator.size(), communicator.rank(), config.sync.replicas);
  sized.model = graph_spec(config.model, config.data, sized.train);
  const auto backend = make_backend({.device = config.device.device,
                                     .threads = config.device.threads,
                                     .node_rank = communicator.node_rank(),
                                     .node_size = communicator.node_size()},
                                    sized.device);
  sized.plan = make_plan(build_graph(sized.model), plan_spec(config, sized.job.replicas));
  sized.layout = backend->layout(sized.plan, optimiser_spec(config.optimiser));
  sized.arena_floats = arena_of(*backend, sized, config);
  return sized;
}

void line(const std::string& name, const std::string& text) { fmt::print("# {:<20} {}\n", name, text); }

void print_cost(const Sized& sized) {
  const Graph& graph = sized.plan.graph;
  const Index size = sized.model.image_size;
  const Cost cost = cost_of(graph, size, size);
  line("network", fmt::format("{} for {}x{} input", graph.model, size, size));
  line("parameters", fmt::format("{}", cost.parameters));
  line("forward", fmt::format("{:.3f} GMAC an image = {:.3f} GFLOP (1 multiply-add = 1 MAC = 2 FLOP)", cost.macs / 1e9,
                              2 * cost.macs / 1e9));
  line("training",
       fmt::format("{:.3f} GFLOP an image (forward, data and weight gradients)", cost.training_flops / 1e9));
}

void print_memory(const Sized& sized, const TrainConfig& config) {
  // Averaging weights takes one set a replica and one for the mean.
  const int sets = config.sync.mode == SyncMode::weights ? sized.job.turns + 1 : 1;
  const SetLayout& layout = sized.layout;
  const double parameters = sets * megabytes(layout.values.count), optimiser = sets * megabytes(layout.optimiser.count),
               statistics = sets * megabytes(layout.statistics.count + layout.state.count),
               gradients = megabytes(sized.plan.table.block()), activations = megabytes(sized.arena_floats);
  const Job& job = sized.job;
  Index images = job.run.count > 0 ? sample_range(job.order, job.run.first, job.run.count).count : 0;
  if (sized.has_val) images += EvaluationBatches::share(sized.val.samples, job.ranks, job.rank).count;
  const double samples = static_cast<double>(images * sized.train.image_bytes()) / mega;
  line("memory a rank", fmt::format("{:.1f} MB (10^6 bytes; what libraries keep is not counted)",
                                    parameters + optimiser + statistics + gradients + activations + samples));
  line("  parameters", fmt::format("{:.1f} MB in {} sets", parameters, sets));
  line("  optimiser", fmt::format("{:.1f} MB", optimiser));
  line("  statistics", fmt::format("{:.1f} MB", statistics));
  line("  gradients", fmt::format("{:.1f} MB in {} buckets", gradients, sized.plan.buckets.size()));
  line("  activations", fmt::format("{:.1f} MB", activations));
  line("  samples", fmt::format("{:.1f} MB ({} images)", samples, images));
}

}  // namespace

Exit dry_run(Communicator& communicator, const TrainConfig& config) {
  return communicator.together("the dry run", [&] {
    if (communicator.rank() != 0) return;
    const Sized sized = size_up(communicator, config);
    const DatasetInfo& data = sized.train;
    fmt::print("{}", to_ini(config));
    line("data set", fmt::format("{} train images of {}x{}x{}, {} classes", data.samples, data.height, data.width,
                                 data.channels, data.classes));
    print_cost(sized);
    line("device", sized.device);
    print_memory(sized, config);
    line("job", describe(sized.job, config));
    line("global batch", fmt::format("{}", sized.job.global_batch));
    line("peak rate", fmt::format("{}", sized.job.peak_rate));
    line("steps per epoch", fmt::format("{}", sized.job.steps_per_epoch));
  });
}

}  // namespace convoy
