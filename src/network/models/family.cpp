// SPDX-License-Identifier: Apache-2.0
#include "network/models/family.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/errors.hpp"

namespace convoy {

Index multiple_of_8(double channels) {
  const Index near = std::max<Index>(8, static_cast<Index>(channels + 4) / 8 * 8);
  return static_cast<double>(near) < 0.9 * channels ? near + 8 : near;
}

OtherName renamed(std::map<std::string, std::string> names) {
  return [names = std::move(names)](const std::string& name) -> std::optional<NamedNetwork> {
    const auto found = names.find(name);
    if (found == names.end()) return std::nullopt;
    return NamedNetwork{found->second};
  };
}

ModelOption dropout_option() {
  return {.name = "dropout",
          .form = ModelOption::Form::share,
          .help = "share of values that dropout layers drop; default: the model's",
          .lacks = "dropout"};
}

float dropout_of(const GraphSpec& spec, float otherwise) {
  const std::string text = spec.option("dropout");
  if (text.empty()) return otherwise;
  const auto share = static_cast<float>(std::strtod(text.c_str(), nullptr));
  if (!(share >= 0 && share < 1)) fail(Exit::usage, "dropout {} (must be at least 0 and below 1)", text);
  return share;
}

std::vector<ModelOption> with_aux_options(std::vector<ModelOption> options) {
  options.push_back({.name = "aux-heads",
                     .form = ModelOption::Form::flag,
                     .help = "train auxiliary classifiers too, whose losses are added to the network's",
                     .lacks = "auxiliary classifiers",
                     .aliases = {"aux-logits"}});
  options.push_back({.name = "aux-weight",
                     .form = ModelOption::Form::factor,
                     .help = "factor of the loss of each auxiliary classifier; default: the model's",
                     .lacks = "auxiliary classifiers"});
  return options;
}

std::optional<float> aux_weight_of(const GraphSpec& spec, float otherwise) {
  const std::string weight = spec.option("aux-weight");
  if (spec.option("aux-heads") == "true") return weight.empty() ? otherwise : std::strtof(weight.c_str(), nullptr);
  if (!weight.empty()) fail(Exit::usage, "--aux-weight has no effect without --aux-heads; give both, or drop it");
  return {};
}

}  // namespace convoy
