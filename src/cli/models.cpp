// SPDX-License-Identifier: Apache-2.0
#include "network/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/command.hpp"
#include "config/network_file.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/standard_output.hpp"
#include "core/table.hpp"
#include "network/graph.hpp"
#include "network/layers.hpp"

namespace convoy {
namespace {

struct ModelsConfig {
  std::vector<std::string> models;  ///< empty: the common ones
  TableFormat format = TableFormat::text;
  bool show = false;
  GraphSpec network{.model = ""};  ///< options of the networks; `model` takes --num-layers
};

std::vector<OptionGroup> options_of(ModelsConfig& config) {
  OptionGroup group{"Models", {}};
  group.options.push_back(table_format_option(config.format));
  group.options.push_back(switch_option("show", config.show, "print the network as a file for --model-file"));
  OptionGroup network = network_options(config.network);
  std::erase_if(network.options, [](const Option& option) {
    const auto others = {"model", "model-file", "layers", "label-smoothing"};
    return std::find(others.begin(), others.end(), option.name) != others.end();
  });
  return {std::move(group), std::move(network)};
}

/// With the options that are given, for the input that the network is usually given.
GraphSpec spec_of(const ModelsConfig& config, const std::string& name) {
  GraphSpec spec = config.network;
  const std::string depth = std::exchange(spec.model, name);
  if (!depth.empty() && find_network(name, ""))
    fail(Exit::usage, "--num-layers {} adds a depth to '{}', which has one; leave one of them out", depth, name);
  if (const auto found = find_network(name, depth)) {
    spec.model = found->model;
    for (const auto& [option, value] : found->options) {
      const auto said = spec.options.insert({option, value}).first;
      if (said->second != value)
        fail(Exit::usage, "'{}' is a network with {} {}, and --{} {} says another; leave one of them out", name, option,
             value, option, said->second);
    }
  } else {
    spec.model += depth;
  }
  return with_usual_input(std::move(spec), 0, 0, 0);
}

TableRow row_of(const ModelsConfig& config, const std::string& name) {
  const GraphSpec spec = spec_of(config, name);
  const Cost cost = cost_of(build_graph(spec), spec.image_size, spec.image_size);
  // Of another version it is another network.
  const double top1 = spec.options.empty() && spec.activation.empty() ? published_top1(spec.model) : 0;
  return {spec.model,
          fmt::format("{}", cost.parameters),
          fmt::format("{:.1f}", cost.macs / 1e6),
          fmt::format("{} x {} x {}", spec.image_size, spec.image_size, spec.channels),
          fmt::format("{}", spec.classes),
          top1 > 0 ? fmt::format("{:.2f}", top1) : "-"};
}

std::string file_of(const ModelsConfig& config, const std::string& name) {
  const Graph graph = build_graph(spec_of(config, name));
  return print_network_file({graph.model, layers_of(graph)});
}

Exit run_models(const Words& words) {
  ModelsConfig config;
  config.models = read_words("models", options_of(config), words);
  if (const std::string& depth = config.network.model; !depth.empty() && config.models.empty())
    fail(Exit::usage, "--num-layers {} is the depth of a network; give its name, e.g. 'convoy models resnet'", depth);
  if (config.show) {
    if (config.models.size() != 1) fail(Exit::usage, "'convoy models --show' prints one network; give its name");
    write_output(file_of(config, config.models.front()));
    return Exit::ok;
  }
  const bool common = config.models.empty();
  if (common) config.models = model_names();
  std::vector<TableRow> rows{{"network", "parameters", "MMACs", "input", "classes", "published_top1"}};
  for (const std::string& model : config.models) rows.push_back(row_of(config, model));
  std::string text = table_text(rows, config.format);
  if (common && config.format == TableFormat::text)
    text +=
        "MMACs: million multiply-adds of a forward pass of one image. published_top1: percent on ImageNet's val split of\n"
        "torchvision's IMAGENET1K_V1 weights. Families have more depths ('convoy train --help model').\n";
  write_output(text);
  return Exit::ok;
}

}  // namespace

Command models_command() {
  return {
      .name = "models",
      .overview = {"models [NETWORK ...]", "networks: parameters, cost, input, published accuracy"},
      .usage = "convoy models [NETWORK ...] [options]",
      .text =
          "Lists networks for --model with their parameters, multiply-adds, the input that they are usually given, and\n"
          "the accuracy that torchvision publishes. NETWORK may be any depth of a family, such as resnet218 or wrn22_8. With the\n"
          "options of networks (--resnet-version, --variant ...), --show prints any form of a network.",
      .see_options = see_options<ModelsConfig>,
      .alone = run_models};
}

}  // namespace convoy
