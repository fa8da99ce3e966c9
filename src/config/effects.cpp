// SPDX-License-Identifier: Apache-2.0
#include "config/effects.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Counts = bool (*)(const TrainConfig&);

/// Options that count only where `counts` says so.
struct Dependence {
  std::vector<std::string_view> options;
  const char* needs;
  Counts counts;
  Mistake mistake = Mistake::anywhere;
};

Decay decay(const TrainConfig& c) { return c.optimiser.schedule.decay; }
bool one_of(Decay decay, std::initializer_list<Decay> some) {
  return std::find(some.begin(), some.end(), decay) != some.end();
}
const AugmentSpec& augment(const TrainConfig& c) { return c.data.augment; }

/// An unknown network, which check() tells of, has what the user says.
bool has_norms(const TrainConfig& config) {
  const GraphSpec& model = config.model;
  const auto& layers = model.layers;
  if (!layers.empty())
    return std::any_of(layers.begin(), layers.end(), [](auto& one) { return one.operation == BatchNorm::word; });
  try {
    const Graph graph = build_graph(model);
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](auto& node) { return as<BatchNorm>(node) != nullptr; });
  } catch (const Error&) {
    return true;
  }
}

const std::vector<Dependence>& rules() {
  static const std::vector<Dependence> all = {
      {{"card"}, "--dry-run", [](const TrainConfig& c) { return c.dry_run; }},
      {{"loss-scale-window"},
       "--precision fp16 with a dynamic --loss-scale",
       [](const TrainConfig& c) { return c.device.precision == Precision::fp16 && c.optimiser.loss_scale == 0; }},
      {{"lr"},
       "another --lr-schedule than phases, whose [phase.N] have learning rates of their own",
       [](const TrainConfig& c) { return decay(c) != Decay::phases; },
       Mistake::command_line},
      {{"lr-base-batch"},
       "--lr-scaling linear or sqrt",
       [](const TrainConfig& c) { return c.optimiser.scaling != Scaling::none; }},
      {{"lr-step-epochs"},
       "--lr-schedule step or multistep",
       [](const TrainConfig& c) {
         return one_of(decay(c), {Decay::step, Decay::multistep});
       }},
      {{"lr-factor"},
       "--lr-schedule step, multistep, exponential or plateau",
       [](const TrainConfig& c) {
         return one_of(decay(c), {Decay::step, Decay::multistep, Decay::exponential, Decay::plateau});
       }},
      {{"lr-patience"}, "--lr-schedule plateau", [](const TrainConfig& c) { return decay(c) == Decay::plateau; }},
      {{"lr-power"}, "--lr-schedule poly", [](const TrainConfig& c) { return decay(c) == Decay::poly; }},
      {{"min-lr"},
       "--lr-schedule step, multistep, exponential, poly, cosine, linear or plateau",
       [](const TrainConfig& c) {
         return !one_of(decay(c), {Decay::constant, Decay::onecycle, Decay::phases});
       }},
      {{"warmup-lr"}, "--warmup-epochs", [](const TrainConfig& c) { return c.optimiser.schedule.warmup_epochs > 0; }},
      {{"onecycle-start", "onecycle-div", "onecycle-final-div", "onecycle-linear"},
       "--lr-schedule onecycle",
       [](const TrainConfig& c) { return decay(c) == Decay::onecycle; }},
      {{"local-sgd-start"},
       "--sync weights with --local-steps above 1",
       [](const TrainConfig& c) {
         return c.sync.local_start == 0 || (c.sync.mode == SyncMode::weights && c.sync.local_steps > 1);
       }},
      {{"overlap-average"},
       "--sync weights",
       [](const TrainConfig& c) { return !c.sync.overlap || c.sync.mode == SyncMode::weights; }},
      {{"node-steps"},
       "--sync weights",
       [](const TrainConfig& c) { return !c.sync.group.is_on() || c.sync.mode == SyncMode::weights; }},
      {{"node-replicas"},
       "--node-steps",
       [](const TrainConfig& c) { return c.sync.group.replicas == 0 || c.sync.group.is_on(); }},
      {{"local-momentum"},
       "--sync weights",
       [](const TrainConfig& c) {
         return c.sync.momentum == MomentumPolicy::keep || c.sync.mode == SyncMode::weights;
       }},
      {{"outer-optimizer"},
       "--sync weights",
       [](const TrainConfig& c) { return !c.sync.outer.is_on() || c.sync.mode == SyncMode::weights; }},
      {{"outer-lr", "outer-momentum"},
       "--outer-optimizer momentum or nesterov",
       [](const TrainConfig& c) { return c.sync.outer.is_on(); }},
      {{"spike-factor"},
       "--on-spike warn or rollback",
       [](const TrainConfig& c) { return c.on_spike != OnSpike::off; }},
      {{"ema-steps"}, "--ema-decay", [](const TrainConfig& c) { return c.ema.decay > 0; }},
      {{"lookahead-alpha", "lookahead-power"},
       "--lookahead-steps",
       [](const TrainConfig& c) { return c.lookahead.steps > 0; }},
      {{"synthetic-samples", "synthetic-size", "synthetic-channels", "synthetic-classes"},
       "--synthetic",
       [](const TrainConfig& c) { return c.data.synthetic; },
       Mistake::command_line},
      {{"stage-dir"}, "--data-cache stage", [](const TrainConfig& c) { return c.data.cache == DataCache::stage; }},
      {{"shuffle-buffer"},
       "--shuffle buffered",
       [](const TrainConfig& c) { return c.data.shuffle == Shuffle::buffered; }},
      {{"min-random-area", "max-random-area", "min-random-aspect-ratio", "max-random-aspect-ratio"},
       "--crop resized (or --augment with a recipe)",
       [](const TrainConfig& c) { return augment(c).crop == Crop::resized; }},
      {{"scaled-decoding"},
       "--crop resized",
       [](const TrainConfig& c) { return !augment(c).scaled_decoding || augment(c).crop == Crop::resized; }},
      {{"padding-mode"},
       "--pad",
       [](const TrainConfig& c) { return augment(c).padding == Padding::constant || augment(c).pad > 0; }},
      {{"pca-noise-source"},
       "--pca-noise (or --augment mxnet)",
       [](const TrainConfig& c) {
         return augment(c).colour.source == ColourSource::imagenet || augment(c).colour.lighting > 0;
       }},
      {{"pad"},
       "--crop window",
       [](const TrainConfig& c) { return augment(c).pad == 0 || augment(c).crop != Crop::resized; }},
      {{"randaugment-operations", "randaugment-magnitude", "randaugment-bins"},
       "--auto-augment randaugment",
       [](const TrainConfig& c) { return augment(c).policy.policy == Policy::rand; }},
      {{"augmix-severity"},
       "--auto-augment augmix",
       [](const TrainConfig& c) { return augment(c).policy.policy == Policy::mix; }},
      {{"mix-probability"}, "--mixup or --cutmix", [](const TrainConfig& c) { return augment(c).mixing.any(); }},
      {{"leaky-slope"},
       "--activation leaky_relu",
       [](const TrainConfig& c) { return c.model.activation == "leaky_relu"; }},
      {{"initialiser-std"},
       "--initialiser normal, truncated_normal or uniform",
       [](const TrainConfig& c) {
         const std::string& name = c.model.initialiser;
         return name == "normal" || name == "truncated_normal" || name == "uniform";
       }},
      {{"initialiser-gain"},
       "--initialiser orthogonal",
       [](const TrainConfig& c) { return c.model.initialiser == "orthogonal"; }},
      {{"norm-momentum", "norm-epsilon"}, "a network with batch norms", has_norms},
      {{"hidden"}, "--model mlp", [](const TrainConfig& c) { return c.model.model == "mlp"; }},
      {{"val-interval", "eval-batch-size", "limit-val-batches", "rectangular-validation", "flip-test",
        "translate-test"},
       "an evaluation; drop --skip-eval",
       [](const TrainConfig& c) { return !c.skip_eval; }},
      {{"save-every"},
       "--checkpoints",
       [](const TrainConfig& c) { return c.checkpoint.save || c.checkpoint.save_every == 0; }},
      {{"save-every-steps", "save-every-minutes", "keep-checkpoints"},
       "--checkpoints",
       [](const TrainConfig& c) { return c.checkpoint.save; }},
      {{"restart"}, "--resume auto", [](const TrainConfig& c) { return c.checkpoint.resume == "auto"; }},
      {{"mtbf"}, "--save-every-minutes auto", [](const TrainConfig& c) { return c.checkpoint.save_auto; }},
  };
  return all;
}

}  // namespace

Effect effect_of(const TrainConfig& config, const std::string& option) {
  for (const RuleOption& of_rule : options_of_rules()) {
    if (of_rule.name != option) continue;
    const OptimiserConfig& optimiser = config.optimiser;
    const bool counts =
        info_of(optimiser.rule).find(option) != nullptr || optimiser.settings.at(option) == of_rule.plain;
    return counts ? Effect{} : Effect{.mistake = Mistake::anywhere, .needs = "--optimizer " + rules_with(option)};
  }
  for (const Compression kind : all_compressions)
    if (option == words_of(kind).setting && config.sync.wire.compression != kind)
      return {.mistake = Mistake::anywhere, .needs = std::string("--wire ") + name_of(kind)};
  for (const Dependence& rule : rules()) {
    const bool about = std::find(rule.options.begin(), rule.options.end(), option) != rule.options.end();
    if (about && !rule.counts(config)) return {.mistake = rule.mistake, .needs = rule.needs};
  }
  return {};
}

}  // namespace convoy
