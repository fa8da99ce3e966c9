// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "config/network_file.hpp"
#include "config/options.hpp"
#include "core/errors.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

/// Of ModelOption::Form::factor; a network hundreds of times as wide as the published one is a mistake.
constexpr Bounds factors{.low = 0, .high = 100, .low_excluded = true};

/// How a value of this form is read: checked, and written as it would be printed. Throws BadValue.
std::string canonical(const ModelOption& option, const std::string& text) {
  switch (option.form) {
    case ModelOption::Form::word:
      for (const std::string& word : option.words)
        if (is_same_word(word, text)) return word;
      throw BadValue("is not one of the choices");
    case ModelOption::Form::share:
      return print_number(static_cast<float>(read_number(text, from_below(0, 1))));
    case ModelOption::Form::factor:
      return print_number(read_number(text, factors));
    case ModelOption::Form::flag:
      return read_bool(text) ? "true" : "";
    case ModelOption::Form::counts: {
      std::vector<Index> counts;
      for (const std::string& item : split_list(text)) counts.push_back(read_integer(item, from_to(1, 1 << 24)));
      return print_list(counts);
    }
  }
  throw std::logic_error("unknown form of option " + option.name);
}

/// An option of some families, kept as text in the spec. The default is the same as not set.
Option family_option(const ModelOption& declared, GraphSpec& model) {
  std::string unused;
  Option option = word_option(declared.name, unused, declared.words, declared.help);
  switch (declared.form) {
    case ModelOption::Form::word:
      break;
    case ModelOption::Form::share:
      option.value = "F";
      option.allowed = from_below(0, 1).text();
      break;
    case ModelOption::Form::factor:
      option.value = "F";
      option.allowed = factors.text();
      break;
    case ModelOption::Form::flag:
      option.allowed = "true, false";
      break;
    case ModelOption::Form::counts:
      option.value = "N,N";
      option.allowed = "a comma-separated list of numbers " + from_to(1, 1 << 24).text();
      break;
  }
  option.aliases = declared.aliases;
  option.set = [declared, &model](const std::string& text) {
    const std::string value = canonical(declared, text);
    if (value == declared.otherwise)
      model.options.erase(declared.name);
    else
      model.options[declared.name] = value;
  };
  option.print = [declared, &model] {
    const auto set = model.options.find(declared.name);
    if (set != model.options.end()) return set->second;
    return declared.form == ModelOption::Form::flag ? std::string("false") : declared.otherwise;
  };
  return option;
}

/// A number of batch norms, which is the model's own where the option is not given.
Option norm_option(std::string name, GraphSpec& model, std::optional<float> GraphSpec::*given, float Norms::*counts,
                   const Bounds& bounds, std::string help) {
  Option option{.name = std::move(name), .value = "F", .help = std::move(help), .allowed = bounds.text()};
  option.set = [&model, given, bounds](const std::string& text) {
    model.*given = static_cast<float>(read_number(text, bounds));
  };
  option.print = [&model, counts] { return print_number(norms_of(model).*counts); };
  return option;
}

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
  std::vector<ModelOption> families = family_options();
  // The order of options is part of the configuration hash: those of families that came later stand at the end.
  const auto add_family = [&](const std::string& name) {
    const auto found =
        std::find_if(families.begin(), families.end(), [&](const ModelOption& option) { return option.name == name; });
    require(found != families.end(), "no network has an option that the command line has");
    add(family_option(*found, model)).decides_bits();
    families.erase(found);
  };
  std::string names;
  for (const auto& name : model_names()) names += (names.empty() ? "" : ", ") + name;
  Option network = text_option("model", "NAME", model.model, "network; --help model lists them");
  network.allowed = names + ", other depths of resnet";
  add(std::move(network)).short_form('m').also({"arch", "a", "network", "mname"}).decides_bits();
  Option file{.name = "model-file",
              .value = "FILE",
              .help = "network that a file describes, or an ONNX graph, in place of --model (docs/networks.md)"};
  file.set = [](const std::string&) {};  // what reads configurations puts the layers in its place
  file.print = [] { return std::string(); };
  add(std::move(file));
  Option layers{.name = "layers", .value = "LAYERS", .help = "layers of --model-file in one line"};
  layers.allowed = "what a configuration of Convoy holds";
  layers.set = [&model](const std::string& text) { model.layers = layers_of_line(text); };
  layers.print = [&model] { return to_line(model.layers, Origins::dropped); };
  layers.decides_bits_unless({""});
  add(std::move(layers.hidden()));
  add_family("resnet-version");
  add_family("stem");
  add(word_option("activation", model.activation, activation_names(), "default: the model's")).decides_bits();
  add_family("pooling");
  add_family("variant");
  add_family("dropout");
  add(number_option("leaky-slope", "F", model.leaky_slope, from_below(0, 1), "slope of leaky_relu below 0"))
      .decides_bits();
  add(norm_option("norm-momentum", model, &GraphSpec::norm_momentum, &Norms::momentum, from_to(0, 1),
                  "share of the new batch in the running statistics of batch norm"))
      .also({"bn-momentum"})
      .default_depends("0.1; 0.01 for mobilenet_v3 and efficientnet_b5 to b7, 0.0003 for mnasnet")
      .decides_bits();
  add(in_fp32(norm_option("norm-epsilon", model, &GraphSpec::norm_epsilon, &Norms::epsilon, above(0),
                          "added to the variance in batch norm"),
              above(0)))
      .also({"bn-epsilon", "bn-eps"})
      .default_depends(
          "1e-05; 0.001 for mobilenet_v3, efficientnet_b5 to b7, efficientnet_v2, googlenet, inception_v3, inception_v4 and inception_resnet_v2")
      .decides_bits();
  add(word_option("initialiser", model.initialiser,
                  {"he", "xavier", "normal", "truncated_normal", "uniform", "orthogonal"},
                  "of weights; default: the model's"))
      .also({"initializer", "init"})
      .answers({{"default", "leave it out for the model's own"},
                {"msra", "use he"},
                {"one", "Convoy starts no weights with one value, of which a layer would learn one feature"},
                {"zero", "Convoy starts no weights with one value, of which a layer would learn one feature"}})
      .decides_bits();
  add(fp32_option("initialiser-std", model.initialiser_std, above(0),
                  "standard deviation of normal and truncated_normal, bound of uniform"))
      .also({"initializer-std"})
      .decides_bits();
  add(fp32_option("initialiser-gain", model.initialiser_gain, above(0),
                  "factor of orthogonal matrices, as torch.nn.init.orthogonal_ takes it; 1.414 suits ReLU"))
      .also({"initializer-gain"})
      .decides_bits();
  add_family("zero-init-residual");
  add(fp32_option("label-smoothing", model.label_smoothing, from_below(0, 1),
                  "share of the target spread over all classes"))
      .also({"smoothing"})
      .decides_bits();
  add_family("hidden");
  for (const ModelOption& declared : families) {
    Option& option = add(family_option(declared, model));
    option.decides_bits_unless({""});
    option.print = [name = declared.name, &model] { return model.option(name); };
    if (!declared.otherwise.empty()) option.default_depends(declared.otherwise);
  }
  return group;
}

OptionGroup device_options(DeviceConfig& device) {
  OptionGroup group{"Device", {}};
  auto add = [&](Option option) -> Option& { return group.options.emplace_back(std::move(option)); };
  add(word_option("device", device.device, {"auto", "cpu", "cuda"},
                  "auto takes CUDA where it is built in and a GPU is found; cuda never falls back to cpu"))
      .decides_bits()
      .answers({{"gpu*", "use cuda"}, {"cuda:*", "use cuda: local rank i of a host takes its GPU i"}})
      .only_rounds();
  add(number_option("threads", "N", device.threads, from_to(0, 4096),
                    "compute threads per rank; 0: as many as the rank has cores"))
      .decides_bits()
      .only_rounds();
  add(choice_option<Bind>(
      "bind", device.bind, {{"cores", Bind::cores}, {"none", Bind::none}},
      "give ranks that the launcher left all on the same cores shares of their own; a launcher's binding stays"));
  add(precision_option(device.precision)).also({"dtype"}).decides_bits();
  add(choice_option<Tuning>("tuning", device.tuning, {{"rule", Tuning::rule}, {"measured", Tuning::measured}},
                            "choose kernels by shape, the same everywhere, or by timing them at the start"))
      .decides_bits()
      .only_rounds();
  add(text_option("kernels", "WORDS", device.options,
                  "further choices of the device's kernels, e.g. no-winograd, winograd-bf16"))
      .decides_bits()
      .only_rounds();
  return group;
}

OptionGroup training_device_options(DeviceConfig& device) {
  OptionGroup group = device_options(device);
  group.options.push_back(choice_option<Recompute>(
      "recompute", device.recompute, {{"off", Recompute::off}, {"auto", Recompute::automatic}, {"all", Recompute::all}},
      "blocks of the network run forward a second time in backward, so that what is inside them is not kept: less memory for more time, with the same bits; auto takes blocks until the rest fits into the memory"));
  return group;
}

}  // namespace convoy
