// SPDX-License-Identifier: Apache-2.0
#include "train/start_log.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "config/rate_choice.hpp"
#include "core/launcher.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "train/policy_warnings.hpp"
#include "train/training_job.hpp"

namespace convoy {

void log_placement(const JobPlacement& placement) {
  std::string table = table_of(placement);
  table.pop_back();
  log::info("{}", table);
  if (placement.ranks.size() == 1) {
    const RankPlacement& own = placement.ranks.front();
    const int all = static_cast<int>(std::thread::hardware_concurrency());
    if (own.binding == Binding::launcher && own.cores < all)
      log::info("the launcher keeps the only rank to {} of {}: 'mpirun --bind-to none' leaves it all of them",
                own.cores, counted(all, "core"));
    return;
  }
  std::vector<std::string> hosts;
  for (const RankPlacement& own : placement.ranks) hosts.push_back(own.host);
  if (const HostShares shares = compare_with_node_file(hosts); !shares.text.empty()) log::warn("{}", shares.text);
  for (const std::string& problem : find_overbooked_cores(placement)) {
    log::warn("{}; 'convoy preflight' shows the whole; check the launcher's options for cores and binding", problem);
  }
}

void log_start(const TrainingJob& job) {
  const Plan& plan = job.engine->plan();
  const ProgramSizes& sizes = job.engine_spec.sizes.front();
  log::info("{}; {}; {} parameters{}", plan.graph.model, job.engine->backend().describe(),
            cost_of(plan.graph, sizes.height, sizes.width).parameters,
            job.config.frozen.empty() ? "" : fmt::format(", of which {} train", trained_parameters(plan.table)));
  log::info("{}", describe(job.shape, job.config));
  if (const std::string text = job.engine->recomputation(); !text.empty()) log::info("recomputation: {}", text);
  if (const std::string why = explain_rate(job.config); !why.empty() && !job.resume) log::info("{}", why);
  const TrainingPhase& first = job.phases.front();
  log::info("{}; {}; run directory '{}'", tell_input(first.splits.train, first.augment), tell_validation(first),
            job.config.output.folder);
  if (job.phases.size() > 1) log::info("{}", describe(job.phases));
  log::info("{}", explain(job.shape.sync));
  if (job.config.model.label_smoothing > 0)
    log::info(
        "losses, those of validations too, are against labels smoothed by {} (--label-smoothing): compare them "
        "only with losses of the same smoothing",
        job.config.model.label_smoothing);
  if (!first.class_weights.empty()) {
    const auto [low, high] = std::minmax_element(first.class_weights.begin(), first.class_weights.end());
    log::info(
        "training losses count the classes {:.3g} to {:.3g} times (--class-weights, 1 on average over the images); those "
        "of validations count all alike",
        *low, *high);
  }
  log::info("samples and batches take {:.1f} MB per rank", static_cast<double>(job.data->memory_bytes()) / 1e6);
  log::info("device: {}; all-reduce: {}", job.engine->chosen_device(), job.transport.reason);
  if (job.shape.rank != 0) return;
  for (const std::string& warning : data_warnings(job.phases)) log::warn("{}", warning);
  for (const std::string& warning : likely_mistakes(job)) log::warn("{}", warning);
  job.metrics->event(job.resume ? "resume" : "start",
                     {{"build", build_id()},
                      {"model", plan.graph.model},
                      {"device", job.engine->backend().describe()},
                      {"checkpoint", job.resume ? job.resume->path : std::string()}},
                     {{"seed", static_cast<Index>(job.config.seed)},
                      {"ranks", job.shape.ranks},
                      {"replicas", job.shape.replicas},
                      {"global_batch", job.shape.global_batch},
                      {"other_val", job.resume && job.resume->other_val ? 1 : 0},
                      {"step", job.state.position.step}});
  job.state_file->update([&](RunState& run) {
    const Position& position = job.state.position;
    run.run = job.attempt.record.run;
    run.epochs = static_cast<Index>(std::ceil(job.config.epochs));
    run.step = run.start_step = position.step;
    run.steps = job.shape.total_steps;
    run.steps_per_epoch = job.shape.steps_per_epoch;
    run.epoch = std::min(position.epoch + 1, run.epochs);
    if (!job.resume) return;
    run.checkpoint = path_from(job.config.output.folder, job.resume->path);
    run.checkpoint_step = position.step;
    run.checkpoint_time = time_of_file(job.resume->path);
  });
}

}  // namespace convoy
