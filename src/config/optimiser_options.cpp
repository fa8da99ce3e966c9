// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"
#include "options/ranges.hpp"

namespace convoy {

namespace {

Option option_of(const RuleOption& of_rule, OptimiserConfig& optimiser) {
  const Bounds bounds{
      .low = of_rule.low, .high = of_rule.high, .low_excluded = of_rule.low_excluded, .high_excluded = true};
  double& to = optimiser.settings.at(of_rule.name);
  Option option = number_option(of_rule.name, "F", to, bounds, rules_with(of_rule.name) + ": " + of_rule.help);
  if (of_rule.is_switch) {
    option.value = option.allowed = "";
    option.set = [&to](const std::string& text) { to = read_bool(text) ? 1 : 0; };
    option.print = [&to] { return std::string(to != 0 ? "true" : "false"); };
  } else {
    option = in_fp32(std::move(option), bounds);
  }
  for (const char* alias : of_rule.aliases)
    if (alias != nullptr) option.aliases.emplace_back(alias);
  // Momentum was once the only option of a rule, and stood in the hash of all.
  return option.decides_bits_where(
      [&optimiser, name = option.name] { return name == "momentum" || info_of(optimiser.rule).find(name) != nullptr; });
}

}  // namespace

OptionGroup optimiser_options(OptimiserConfig& optimiser) {
  OptionGroup group{"Optimiser", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  std::vector<std::pair<std::string, Rule>> names, others;
  for (const Rule rule : all_rules) {
    names.emplace_back(info_of(rule).name, rule);
    for (const char* alias : info_of(rule).aliases)
      if (alias != nullptr) others.emplace_back(alias, rule);
  }
  add(choice_option<Rule>("optimizer", optimiser.rule, names, "update rule; docs/recipes.md describes each", others))
      .also({"opt", "optimiser"})
      .answers({{"lbsgd",
                 "MXNet's is SGD with a warm-up: use sgd with --lr-scaling linear and --warmup-epochs; with its "
                 "warmup_strategy 'lars' it is lars"},
                {"dcasgd", "it corrects late gradients, and Convoy has none; use sgd"},
                {"sgld", "Convoy adds no noise; the closest is sgd"},
                {"lion", "the closest is signum, whose steps are signs of a momentum, too"},
                {"ftrl", "the closest is adagrad"},
                {"adadelta", "the closest is rmsprop"},
                {"adamax", "the closest is adam"},
                {"ftml", "the closest is adam"},
                {"nadam", "the closest is adam"},
                {"radam", "the closest is adam with --warmup-epochs"}})
      .decides_bits()
      .hashed_by_old_names({{"sgd", "momentum"}});
  for (const RuleOption& option : options_of_rules()) add(option_of(option, optimiser));
  add(fp32_option("weight-decay", optimiser.weight_decay, from_below(0, 1),
                  "weight decay of convolution and linear weights, times the learning rate in each step"))
      .also({"wd"})
      .decides_bits();
  add(fp32_option("norm-weight-decay", optimiser.norm_weight_decay, from_below(0, 1),
                  "weight decay of batch norm's scale and shift"))
      .also({"bn-weight-decay"})
      .decides_bits();
  add(fp32_option("bias-weight-decay", optimiser.bias_weight_decay, from_below(0, 1), "weight decay of biases"))
      .decides_bits();
  add(fp32_option("clip-grad-norm", optimiser.clip_norm, at_least(0), "scale gradients down to this norm; 0: off"))
      .also({"clip-grad"})
      .decides_bits();
  add(fp32_option("loss-scale", optimiser.loss_scale, at_least(0),
                  "fp16: factor of the loss in backward; 0: dynamic, from 65536 on, halved by an overflow"))
      .also({"static-loss-scale"})
      .decides_bits();
  add(number_option("loss-scale-window", "STEPS", optimiser.loss_scale_window, from_to(1, 1 << 24),
                    "steps without an overflow until a dynamic loss scale is doubled"))
      .decides_bits();
  return group;
}

OptionGroup schedule_options(OptimiserConfig& optimiser) {
  auto& schedule = optimiser.schedule;
  OptionGroup group{"Learning rate", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(fp32_option("lr", optimiser.rate, above(0),
                  "peak learning rate, used as given. Without it: the optimizer's usual rate (sgd: 0.1 for 256 images, "
                  "scaled to the batch) and a warm-up"))
      .also({"learning-rate"})
      .default_depends("depends on --optimizer")
      .decides_bits();
  add(choice_option<Scaling>(
          "lr-scaling", optimiser.scaling,
          {{"none", Scaling::none}, {"linear", Scaling::linear}, {"sqrt", Scaling::sqrt}},
          "multiply --lr by global batch / --lr-base-batch, or by its square root; linear if --lr is not given and the "
          "optimizer's usual rate is for 256 images"))
      .decides_bits();
  add(number_option("lr-base-batch", "N", optimiser.base_batch, at_least(1), "images per step for which --lr is meant"))
      .also({"lr-base-size"})
      .decides_bits();
  add(choice_option<Decay>("lr-schedule", schedule.decay,
                           {{"constant", Decay::constant},
                            {"step", Decay::step},
                            {"multistep", Decay::multistep},
                            {"exponential", Decay::exponential},
                            {"poly", Decay::poly},
                            {"cosine", Decay::cosine},
                            {"linear", Decay::linear},
                            {"onecycle", Decay::onecycle},
                            {"phases", Decay::phases},
                            {"plateau", Decay::plateau}},
                           "evaluated every step; phases: [phase.N] sections of the configuration file",
                           {{"steplr", Decay::step},
                            {"multisteplr", Decay::multistep},
                            {"exponentiallr", Decay::exponential},
                            {"cosineannealinglr", Decay::cosine},
                            {"polynomial", Decay::poly}}))
      .also({"lr-scheduler", "sched", "lr-mode"})
      .answers({{"tanh", "the closest is cosine"},
                {"cosineannealingwarmrestarts", "no schedule starts again; the closest is cosine"}})
      .decides_bits();
  Option steps = list_option("lr-step-epochs", "E,E", schedule.step_epochs, epochs_above(0),
                             "multistep: multiply by --lr-factor at these epochs; step: every so many epochs");
  steps.set = [set = steps.set](const std::string& text) {
    if (text.starts_with("pow"))
      throw BadValue("is MXNet's polynomial decay: use --lr-schedule poly with --lr-power " +
                     text.substr(std::min(text.size(), text.find_first_not_of("- ", 3))));
    set(text);
  };
  add(std::move(steps)).also({"decay-milestones", "lr-decay-epoch", "lr-step-size"}).decides_bits();
  add(number_option("lr-factor", "F", schedule.factor, {.low = 0, .high = 1, .low_excluded = true},
                    "factor of step, multistep and plateau; of exponential, in each epoch"))
      .also({"lr-gamma", "lr-decay", "decay-rate"})
      .decides_bits();
  add(number_option("lr-patience", "N", schedule.patience, at_least(0),
                    "plateau: multiply by --lr-factor after more than N validations in a row without a new best"))
      .also({"patience-epochs"})
      .decides_bits_where([&schedule] { return schedule.decay == Decay::plateau; });
  add(number_option("lr-power", "F", schedule.power, above(0), "exponent of poly")).decides_bits();
  add(number_option("min-lr", "F", schedule.min_rate, at_least(0),
                    "learning rate at the end of poly, cosine and linear; the least one of others"))
      .also({"lr-min", "end-lr"})
      .decides_bits();
  add(number_option("warmup-epochs", "EPOCHS", schedule.warmup_epochs, from_to(0, most_epochs),
                    "linear rise from --warmup-lr; if --lr is not given: a tenth of the run, at most 5"))
      .also({"lr-warmup-epochs", "warmup"})
      .decides_bits();
  add(number_option("warmup-lr", "F", schedule.warmup_rate, at_least(0), "first learning rate of the warm-up"))
      .decides_bits();
  add(number_option("onecycle-start", "F", schedule.onecycle_start, {0, 1, true, true},
                    "onecycle: part of the run in which the learning rate rises"))
      .also({"pct-start"})
      .decides_bits();
  add(number_option("onecycle-div", "F", schedule.onecycle_div, at_least(1),
                    "onecycle: first learning rate = peak / this"))
      .also({"div-factor"})
      .decides_bits();
  add(number_option("onecycle-final-div", "F", schedule.onecycle_final_div, at_least(1),
                    "onecycle: last learning rate = first one / this"))
      .also({"final-div-factor"})
      .decides_bits();
  add(switch_option("onecycle-linear", schedule.onecycle_linear, "onecycle: straight pieces instead of cosine ones"))
      .decides_bits();
  return group;
}

OptionGroup lookahead_options(LookaheadConfig& lookahead) {
  OptionGroup group{"Lookahead", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  const auto is_on = [&lookahead] { return lookahead.steps > 0; };
  add(number_option("lookahead-steps", "N", lookahead.steps, at_least(0),
                    "every N steps, slow weights move towards the weights, which then return to them; a multiple of "
                    "--local-steps; 0: off"))
      .also({"lookahead-k"})
      .decides_bits_unless({"0"});
  add(number_option("lookahead-alpha", "F", lookahead.alpha, {0, 1, true, true},
                    "share of the way that the slow weights go"))
      .decides_bits_where(is_on);
  add(number_option("lookahead-power", "P", lookahead.power, at_least(0),
                    "the share falls from 1 to --lookahead-alpha as 1 - (1 - alpha) (step / steps of the run)^P; 0: it "
                    "stays at alpha"))
      .decides_bits_where(is_on);
  return group;
}

OptionGroup ema_options(EmaConfig& ema) {
  OptionGroup group{"Moving average of the weights", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  const auto is_on = [&ema] { return ema.decay > 0; };
  add(number_option(
          "ema-decay", "F", ema.decay, from_below(0, 1),
          "keep an average A = F A + (1 - F) weights, and validate and evaluate with it; torchvision's script converts "
          "its --model-ema-decay, Convoy takes F as it is; 0: off"))
      .also({"model-ema-decay"})
      .decides_bits_where(is_on);
  add(number_option("ema-steps", "N", ema.steps, at_least(1),
                    "steps between two updates of that average; a multiple of --local-steps"))
      .also({"model-ema-steps"})
      .decides_bits_where(is_on);
  return group;
}

}  // namespace convoy
