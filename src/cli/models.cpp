// SPDX-License-Identifier: Apache-2.0
#include "network/models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/command.hpp"
#include "config/network_file.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/standard_output.hpp"
#include "core/table.hpp"
#include "interchange/onnx_network.hpp"
#include "io/file_kind.hpp"
#include "network/graph.hpp"
#include "network/layers.hpp"
#include "options/ranges.hpp"

namespace convoy {
namespace {

struct ModelsConfig {
  std::vector<std::string> models;  ///< names or files; empty: the common ones
  TableFormat format = TableFormat::text;
  bool show = false;
  Index classes = 0, channels = 0, image_size = 0;  ///< 0: the usual ones
  GraphSpec network{.model = ""};                   ///< options of the networks; `model` takes --num-layers
};

std::vector<OptionGroup> options_of(ModelsConfig& config) {
  OptionGroup group{"Models", {}};
  group.options.push_back(table_format_option(config.format));
  group.options.push_back(switch_option("show", config.show, "print the network as a file for --model-file"));
  group.options.push_back(number_option("classes", "N", config.classes, from_to(0, 1 << 20),
                                        "outputs of the network; 0: its usual number"));
  group.options.push_back(
      number_option("channels", "N", config.channels, from_to(0, 4), "channels of an image; 0: the usual number"));
  group.options.push_back(number_option("image-size", "PIXELS", config.image_size, from_to(0, 1 << 14),
                                        "side of the images; 0: the usual one"));
  OptionGroup network = network_options(config.network);
  std::erase_if(network.options, [](const Option& option) {
    const auto others = {"model", "model-file", "layers", "label-smoothing"};
    return std::find(others.begin(), others.end(), option.name) != others.end();
  });
  return {std::move(group), std::move(network)};
}

/// A network, and the size of its input.
struct Listed {
  GraphSpec spec;
  Index height = 0, width = 0;
};

/// Of no network that the program knows. Those that are no file either get the error of unknown networks, unless they
/// look like a path.
bool is_file(const std::string& name) {
  if (find_network(name)) return false;
  std::error_code unknown;
  const bool is_there = std::filesystem::exists(name, unknown);
  return is_there || name.find('/') != std::string::npos || name.ends_with(".cfg") || name.ends_with(".onnx");
}

/// What a network file or an ONNX graph describes. Throws Error(usage) or Error(data).
Listed read_file(const ModelsConfig& config, const std::string& path) {
  const GraphSpec& given = config.network;
  if (!given.options.empty() || !given.activation.empty() || !given.model.empty())
    fail(Exit::usage, "'{}' describes its network; leave the options of networks out", path);
  const bool is_onnx = begins_as_onnx(head_of_file(path));
  GraphSpec spec;
  if (!is_onnx) {
    const NetworkFile network = read_network_file(read_text_file(path), path);
    spec.model = network.name;
    spec.layers = network.layers;
    spec = with_usual_input(std::move(spec), config.classes, config.channels, config.image_size);
    return {spec, spec.image_size, spec.image_size};
  }
  const OnnxNetwork network = read_onnx_network(File(path, File::Access::read));
  spec = network.spec;
  if (config.classes > 0) spec.classes = config.classes;
  if (config.channels > 0) spec.channels = config.channels;
  if (config.image_size > 0) spec.image_size = config.image_size;
  const bool has_size = config.image_size == 0 && network.height > 0;
  return {spec, has_size ? network.height : spec.image_size, has_size ? network.width : spec.image_size};
}

/// With the options that are given, for the input that the network is usually given.
Listed find(const ModelsConfig& config, const std::string& name) {
  if (is_file(name)) return read_file(config, name);
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
  spec = with_usual_input(std::move(spec), config.classes, config.channels, config.image_size);
  return {spec, spec.image_size, spec.image_size};
}

TableRow row_of(const ModelsConfig& config, const std::string& name) {
  const auto [spec, height, width] = find(config, name);
  const Cost cost = cost_of(build_graph(spec), height, width);
  // Of another version, or from a file, it is another network.
  const bool is_published = spec.options.empty() && spec.activation.empty() && spec.layers.empty();
  const double top1 = is_published ? published_top1(spec.model) : 0;
  return {spec.model,
          fmt::format("{}", cost.parameters),
          fmt::format("{:.1f}", cost.macs / 1e6),
          fmt::format("{} x {} x {}", height, width, spec.channels),
          fmt::format("{}", spec.classes),
          top1 > 0 ? fmt::format("{:.2f}", top1) : "-"};
}

std::string file_of(const ModelsConfig& config, const std::string& name) {
  const Graph graph = build_graph(find(config, name).spec);
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
      .usage = "convoy models [NETWORK|FILE ...] [options]",
      .text =
          "Lists networks for --model with their parameters, multiply-adds, the input that they are usually given, and\n"
          "the accuracy that torchvision publishes. NETWORK may be any depth of a family, such as resnet218 or wrn22_8. FILE is one\n"
          "for --model-file or an ONNX graph; a file for --model-file is measured with 3 x 32 x 32 values and 10 classes, unless\n"
          "--channels, --image-size and --classes say otherwise. With the options of networks (--resnet-version, --variant ...),\n"
          "--show prints any form of a network.",
      .see_options = see_options<ModelsConfig>,
      .alone = run_models};
}

}  // namespace convoy
