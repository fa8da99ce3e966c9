// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <regex>

#include "interchange/names.hpp"

namespace convoy {
namespace {

bool owns(const Node& node, const char* suffix) { return node.name.ends_with(suffix) && !node.parameters.empty(); }

/// The modules that one block of an inverted-residual network owns, in order.
struct Block {
  std::vector<const Node*> convolutions, norms;
  const Node *squeeze = nullptr, *expand = nullptr;
  Index out() const { return convolutions.back()->parameters.front().shape.front(); }
};

/// `features.2.0` of `features.2.0.block.1.0`; without `.block.`, `.conv.` and `.layers.` the part before the last
/// number. MNASNet's stem, first block and last convolution are numbers of one sequence.
std::string block_of(const std::string& name) {
  for (const char* inner : {".block.", ".conv.", ".layers."})
    if (const auto at = name.find(inner); at != std::string::npos) return name.substr(0, at);
  const auto dot = name.rfind('.');
  if (!name.starts_with("layers.")) return name.substr(0, dot);
  const int number = std::stoi(name.substr(dot + 1));
  return number < 3 ? "stem" : number < 8 ? "separable" : "last";
}

std::vector<Block> blocks_of(const Graph& graph) {
  std::vector<Block> blocks;
  std::string current;
  for (const Node& node : graph.nodes) {
    if (node.parameters.empty() || node.name.starts_with("classifier.")) continue;
    if (const std::string name = block_of(node.name); name != current) {
      blocks.emplace_back();
      current = name;
    }
    Block& block = blocks.back();
    if (owns(node, ".fc1")) {
      block.squeeze = &node;
    } else if (owns(node, ".fc2")) {
      block.expand = &node;
    } else {
      (as<BatchNorm>(node) != nullptr ? block.norms : block.convolutions).push_back(&node);
    }
  }
  return blocks;
}

/// What timm calls the convolutions of a block.
const std::array<const char*, 3>& parts_of(const Block& block) {
  static constexpr std::array expanding{"conv_pw", "conv_dw", "conv_pwl"}, separable{"conv_dw", "conv_pw", ""},
      fused{"conv_exp", "conv_pwl", ""}, single{"conv", "", ""};
  const bool is_depthwise = as<Convolution>(*block.convolutions.front())->groups > 1;
  if (block.convolutions.size() == 3) return expanding;
  if (block.convolutions.size() == 1) return single;
  return is_depthwise ? separable : fused;
}

/// timm counts stages and blocks; a stage's blocks have the same number of channels.
NameMap inverted_residual_names(const Graph& graph, bool third) {
  NameMap names;
  const std::vector<Block> blocks = blocks_of(graph);
  if (blocks.size() < 3) return names;
  names[blocks.front().convolutions.front()->name] = "conv_stem";
  names[blocks.front().norms.front()->name] = "bn1";
  int stage = -1, number = 0;
  Index out = 0;
  for (std::size_t i = 1; i + 1 < blocks.size(); ++i) {
    const Block& block = blocks[i];
    number = block.out() == out ? number + 1 : 0;
    stage += number == 0 ? 1 : 0;
    out = block.out();
    const std::string prefix = fmt::format("blocks.{}.{}.", stage, number);
    const auto& parts = parts_of(block);
    for (std::size_t j = 0; j < std::min(block.convolutions.size(), parts.size()); ++j)
      names[block.convolutions[j]->name] = prefix + parts[j];
    for (std::size_t j = 0; j < block.norms.size(); ++j)
      names[block.norms[j]->name] = fmt::format("{}bn{}", prefix, j + 1);
    if (block.squeeze != nullptr) names[block.squeeze->name] = prefix + "se.conv_reduce";
    if (block.expand != nullptr) names[block.expand->name] = prefix + "se.conv_expand";
  }
  const Block& last = blocks.back();
  const std::string prefix = fmt::format("blocks.{}.0.", stage + 1);
  names[last.convolutions.front()->name] = third ? prefix + "conv" : "conv_head";
  names[last.norms.front()->name] = third ? prefix + "bn1" : "bn2";
  if (third) names["classifier.0"] = "conv_head";
  names[third ? "classifier.3" : "classifier.1"] = "classifier";
  return names;
}

/// timm counts blocks from 1, and calls the parts of a unit what they are.
NameMap regnet_names(const Graph& graph) {
  static const std::map<std::string, std::string> units{
      {"f.a", "conv1"}, {"f.b", "conv2"}, {"f.c", "conv3"}, {"f.se", "se"}, {"proj", "downsample"}};
  static const std::map<std::string, std::string> parts{{"0", "conv"}, {"1", "bn"}, {"fc1", "fc1"}, {"fc2", "fc2"}};
  static const std::regex in_block(R"(trunk_output\.block(\d)\.block\d-(\d+)\.(f\.a|f\.b|f\.c|f\.se|proj)\.(\w+))");
  NameMap names{{"stem.0", "stem.conv"}, {"stem.1", "stem.bn"}, {"fc", "head.fc"}};
  for (const Node& node : graph.nodes) {
    std::smatch found;
    if (node.parameters.empty() || !std::regex_match(node.name, found, in_block)) continue;
    names[node.name] =
        fmt::format("s{}.b{}.{}.{}", found.str(1), std::stoi(found[2]) + 1, units.at(found[3]), parts.at(found[4]));
  }
  return names;
}

}  // namespace

NameMap timm_modules(const Graph& graph) {
  const std::string& model = graph.model;
  if (model.starts_with("efficientnet") || model.starts_with("mobilenet_v2") || model.starts_with("mnasnet"))
    return inverted_residual_names(graph, false);
  if (model.starts_with("mobilenet_v3")) return inverted_residual_names(graph, true);
  if (model.starts_with("regnet")) return regnet_names(graph);
  if (model.starts_with("vgg"))
    return {{"classifier.0", "pre_logits.fc1"}, {"classifier.3", "pre_logits.fc2"}, {"classifier.6", "head.fc"}};
  return {};
}

}  // namespace convoy
