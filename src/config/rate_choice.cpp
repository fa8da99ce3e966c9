// SPDX-License-Identifier: Apache-2.0
#include "config/rate_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/text.hpp"

namespace convoy {
namespace {

constexpr double longest_warmup = 5, warmup_share = 0.1;
constexpr double diloco_rate = 0.7, diloco_momentum = 0.9;

bool says(const TrainConfig& config, const char* option) { return config.said.count(option) > 0; }

/// Phases say rates of their own.
bool has_one_rate(const TrainConfig& config) { return config.optimiser.schedule.decay != Decay::phases; }

bool is_open(const TrainConfig& config) { return !says(config, "lr") && has_one_rate(config); }

/// onecycle has a rise of its own; others end with the run.
bool may_warm_up(const TrainConfig& config, double epochs) {
  const Decay decay = config.optimiser.schedule.decay;
  const bool ends = decay != Decay::constant && decay != Decay::plateau;
  return !says(config, "warmup-epochs") && decay != Decay::onecycle && !(ends && epochs >= config.epochs);
}

/// The outer steps of DiLoCo (Douillard et al. 2023) have a rate and a momentum of their own.
void choose_outer(TrainConfig& config) {
  OuterSpec& outer = config.sync.outer;
  if (outer.rule != OuterRule::nesterov) return;
  if (!says(config, "outer-lr")) outer.rate = diloco_rate;
  if (!says(config, "outer-momentum")) outer.momentum = diloco_momentum;
}

void keep_outer(TrainConfig& config, const TrainConfig& stored) {
  OuterSpec& outer = config.sync.outer;
  if (!outer.is_on() || outer.rule != stored.sync.outer.rule) return;
  if (!says(config, "outer-lr")) outer.rate = stored.sync.outer.rate;
  if (!says(config, "outer-momentum")) outer.momentum = stored.sync.outer.momentum;
}

}  // namespace

void choose_rate(TrainConfig& config) {
  choose_outer(config);
  if (!is_open(config)) return;
  OptimiserConfig& optimiser = config.optimiser;
  const Recipes usual = info_of(optimiser.rule).recipes;
  optimiser.rate = usual.usual_rate;
  if (!says(config, "lr-scaling") && usual.scales_with_images) optimiser.scaling = Scaling::linear;
  const double warmup = std::min(longest_warmup, warmup_share * config.epochs);
  if (may_warm_up(config, warmup)) optimiser.schedule.warmup_epochs = warmup;
}

void keep_rate(TrainConfig& config, const TrainConfig& stored) {
  keep_outer(config, stored);
  OptimiserConfig& optimiser = config.optimiser;
  if (!has_one_rate(config) || !has_one_rate(stored) || optimiser.rule != stored.optimiser.rule) return;
  if (is_open(config)) {
    optimiser.rate = stored.optimiser.rate;
    if (!says(config, "lr-scaling")) optimiser.scaling = stored.optimiser.scaling;
    if (!says(config, "lr-base-batch")) optimiser.base_batch = stored.optimiser.base_batch;
  }
  const double warmup = stored.optimiser.schedule.warmup_epochs;
  if (may_warm_up(config, warmup)) optimiser.schedule.warmup_epochs = warmup;
}

void keep_norms(TrainConfig& config, const TrainConfig& stored) {
  GraphSpec& model = config.model;
  if (model.model != stored.model.model || model.layers.empty() != stored.model.layers.empty()) return;
  const Norms kept = norms_of(stored.model);
  if (!says(config, "norm-momentum")) model.norm_momentum = kept.momentum;
  if (!says(config, "norm-epsilon")) model.norm_epsilon = kept.epsilon;
}

bool keep_unsaid(TrainConfig& config, const std::string& stored) {
  TrainConfig read;
  try {
    read = parse_ini(stored);
  } catch (const Error&) {
    return false;
  }
  keep_rate(config, read);
  keep_norms(config, read);
  return true;
}

std::string explain_rate(const TrainConfig& config) {
  if (!is_open(config)) return {};
  const OptimiserConfig& optimiser = config.optimiser;
  const bool scaled = optimiser.scaling != Scaling::none;
  const double warmup = optimiser.schedule.warmup_epochs;
  return fmt::format(
      "--lr is not given, so it is {}, as usual for {}{}{}; a given --lr is taken as it is, without scaling or warm-up",
      optimiser.rate, info_of(optimiser.rule).title,
      scaled ? fmt::format(" with {} images per step, and scaled to the batch", optimiser.base_batch) : std::string(),
      warmup > 0 ? fmt::format(", after a warm-up of {} (a tenth of the run, at most 5)", counted(warmup, "epoch"))
                 : std::string());
}

}  // namespace convoy
