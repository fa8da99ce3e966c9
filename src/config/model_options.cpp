// SPDX-License-Identifier: Apache-2.0
#include "config/options.hpp"

namespace convoy {
namespace {

/// Takes the names of numpy and MXNet too (`float16`).
Option precision_option(Precision& to) {
  Option option = choice_option<Precision>(
      "precision", to,
      {{"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}},
      "of convolutions and linear layers; weights are kept in fp32");
  option.set = [choose = option.set](const std::string& text) {
    choose(text == "float32" ? "fp32" : text == "float16" ? "fp16" : text == "bfloat16" ? "bf16" : text);
  };
  return option;
}

}  // namespace

OptionGroup model_options(GraphSpec& model) {
  OptionGroup group{"Network", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  std::string names;
  for (const auto& name : model_names()) names += (names.empty() ? "" : ", ") + name;
  Option network = text_option("model", "NAME", model.model, "network, one of those listed below");
  network.allowed = names + ", other depths of resnet";
  add(std::move(network)).short_form('m').also({"arch", "a", "network", "mname"}).decides_bits();
  add(word_option(
          "resnet-version", model.version, {"v1", "v1.5", "v2"},
          "ResNet with the stride in the 1x1 (v1) or the 3x3 (v1.5), or pre-activation (v2); default: the model's"))
      .decides_bits();
  add(word_option("stem", model.stem, {"imagenet", "small"},
                  "first layers for large or small images; default: the model's"))
      .decides_bits();
  add(word_option("activation", model.activation, {"relu", "leaky_relu", "tanh"}, "default: the model's"))
      .decides_bits();
  add(word_option("pooling", model.pooling, {"max", "average"}, "lenet; default: max")).decides_bits();
  add(word_option("variant", model.variant, {"2012", "ray", "owt"}, "alexnet; default: 2012")).decides_bits();
  Option dropout = number_option("dropout", "F", model.dropout, from_below(0, 1),
                                 "share of values that dropout layers drop; default: the model's");
  dropout.print = [&model] { return model.dropout < 0 ? std::string() : print_number(model.dropout); };
  add(std::move(dropout)).decides_bits();
  add(number_option("leaky-slope", "F", model.leaky_slope, from_below(0, 1), "slope of leaky_relu below 0"))
      .decides_bits();
  add(number_option("norm-momentum", "F", model.norm_momentum, from_to(0, 1),
                    "share of the new batch in the running statistics of batch norm"))
      .also({"bn-momentum"})
      .decides_bits();
  add(number_option("norm-epsilon", "F", model.norm_epsilon, above(0), "added to the variance in batch norm"))
      .also({"bn-epsilon", "bn-eps"})
      .decides_bits();
  add(word_option("initialiser", model.initialiser, {"he", "xavier", "normal", "truncated_normal", "uniform"},
                  "of filters; default: the model's"))
      .also({"initializer"})
      .decides_bits();
  add(number_option("initialiser-std", "F", model.initialiser_std, above(0),
                    "standard deviation of normal and truncated_normal, bound of uniform"))
      .also({"initializer-std"})
      .decides_bits();
  add(switch_option("zero-init-residual", model.zero_init_residual,
                    "the last batch norm of each residual branch starts with scale 0"))
      .also({"init-bn0", "last-bn-0-init", "zero-init-last"})
      .decides_bits();
  add(number_option("label-smoothing", "F", model.label_smoothing, from_below(0, 1),
                    "share of the target spread over all classes"))
      .also({"smoothing"})
      .decides_bits();
  add(list_option("hidden", "N,N", model.hidden, from_to(1, 1 << 24), "mlp: widths of the hidden layers"))
      .decides_bits();
  return group;
}

OptionGroup device_options(DeviceConfig& device) {
  OptionGroup group{"Device", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(word_option("device", device.device, {"auto", "cpu", "cuda"},
                  "auto takes CUDA where it is built in and a GPU is found; cuda never falls back to cpu"))
      .decides_bits();
  add(number_option("threads", "N", device.threads, from_to(0, 4096),
                    "compute threads a rank; 0: the cores the rank was given"))
      .decides_bits();
  add(choice_option<Bind>(
      "bind", device.bind, {{"cores", Bind::cores}, {"none", Bind::none}},
      "give ranks that the launcher left all on the same cores shares of their own; a launcher's binding stays"));
  add(precision_option(device.precision)).also({"dtype"}).decides_bits();
  add(choice_option<Tuning>("tuning", device.tuning, {{"rule", Tuning::rule}, {"measured", Tuning::measured}},
                            "choose kernels by shape, the same everywhere, or by timing them at the start"))
      .decides_bits();
  add(text_option("kernels", "WORDS", device.options, "further choices of the device's kernels, e.g. no-winograd"))
      .decides_bits();
  return group;
}

}  // namespace convoy
