// SPDX-License-Identifier: Apache-2.0
#include "network/models.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "core/errors.hpp"
#include "core/nearest.hpp"
#include "network/models/families.hpp"

namespace convoy {
namespace {

struct ResnetName {
  int depth = 0;
  std::string_view suffix;  ///< after the depth
};

std::optional<ResnetName> parse_resnet(std::string_view model) {
  constexpr std::string_view prefix = "resnet";
  if (!model.starts_with(prefix)) return std::nullopt;
  model.remove_prefix(prefix.size());
  ResnetName name;
  const auto [end, error] = std::from_chars(model.data(), model.data() + model.size(), name.depth);
  if (error != std::errc{} || name.depth > 9999) return std::nullopt;
  name.suffix = model.substr(static_cast<std::size_t>(end - model.data()));
  return name;
}

bool is_imagenet_depth(int depth) { return depth == 18 || depth == 34 || depth == 50 || depth == 101 || depth == 152; }

/// Depths that are both 6n+2 and 9n+2 have basic blocks up to 146, bottlenecks from the 164 of He et al. 2016 on.
std::optional<BlockKind> find_cifar_kind(const ResnetName& name) {
  const bool basic = name.depth >= 8 && name.depth % 6 == 2, bottleneck = name.depth >= 11 && name.depth % 9 == 2;
  if (name.suffix == "_bottleneck") return bottleneck ? std::optional(BlockKind::bottleneck) : std::nullopt;
  if (basic && !(bottleneck && name.depth >= 164)) return BlockKind::basic;
  return bottleneck ? std::optional(BlockKind::bottleneck) : std::nullopt;
}

[[noreturn]] void fail_unknown(const std::string& model) {
  const std::vector<std::string> names = model_names();
  const std::string meant = nearest(model, names);
  if (!meant.empty()) fail(Exit::usage, "unknown model '{}'; did you mean '{}'?", model, meant);
  fail(Exit::usage, "unknown model '{}'; there are {} and other depths of resnet", model, fmt::join(names, ", "));
}

void check_sizes(const GraphSpec& spec) {
  if (spec.classes < 1 || spec.channels < 1 || spec.image_size < 1)
    fail(Exit::usage, "a network for {} classes, {} channels and images of {} px (all must be positive)", spec.classes,
         spec.channels, spec.image_size);
  if (!(spec.label_smoothing >= 0 && spec.label_smoothing < 1))
    fail(Exit::usage, "label smoothing {} (must be at least 0 and below 1)", spec.label_smoothing);
}

}  // namespace

Graph build_graph(const GraphSpec& spec) {
  check_sizes(spec);
  if (spec.model == "mlp") return build_mlp(spec);
  if (spec.model == "lenet") return build_lenet(spec);
  if (const auto name = parse_resnet(spec.model)) {
    if (name->suffix.empty() && is_imagenet_depth(name->depth)) return build_resnet(spec, name->depth);
    const bool known_suffix = name->suffix.empty() || name->suffix == "_cifar" || name->suffix == "_bottleneck";
    if (const auto kind = find_cifar_kind(*name); kind && known_suffix)
      return build_resnet_cifar(spec, name->depth, *kind);
  }
  fail_unknown(spec.model);
}

std::vector<std::string> model_names() {
  return {"mlp",       "lenet",      "resnet18",       "resnet34",        "resnet50",        "resnet101",
          "resnet152", "resnet20",   "resnet32",       "resnet44",        "resnet56",        "resnet110",
          "resnet164", "resnet1001", "resnet50_cifar", "resnet101_cifar", "resnet152_cifar", "resnet110_bottleneck"};
}

std::string model_help() {
  return "mlp, lenet\n"
         "resnet18, resnet34, resnet50, resnet101, resnet152: for ImageNet (v1, v1.5, v2)\n"
         "resnetN with N = 6n+2 (20, 32, 44, 56, 110 ...): for CIFAR, basic blocks (v1, v2)\n"
         "resnetN with N = 9n+2 (164, 1001 ...): for CIFAR, bottlenecks (v2, v1, v1.5); below 164 where N is 6n+2 "
         "too:\n"
         "  resnetN_bottleneck\n"
         "resnet50_cifar, resnet101_cifar, resnet152_cifar: depths that both families have, in the form for CIFAR";
}

}  // namespace convoy
