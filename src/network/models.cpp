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
  if (!name.suffix.empty() && name.suffix != "_cifar" && name.suffix != "_bottleneck") return std::nullopt;
  if (bottleneck && (!basic || name.depth >= 164 || name.suffix == "_bottleneck")) return BlockKind::bottleneck;
  if (basic && name.suffix != "_bottleneck") return BlockKind::basic;
  return std::nullopt;
}

[[noreturn]] void fail_unknown(const std::string& model) {
  const std::vector<std::string> names = model_names();
  const std::string meant = nearest(model, names);
  if (!meant.empty()) fail(Exit::usage, "unknown model '{}'; did you mean '{}'?", model, meant);
  fail(Exit::usage, "unknown model '{}'; there are {} and other depths of resnet", model, fmt::join(names, ", "));
}

void check_numbers(const GraphSpec& spec) {
  if (spec.classes < 1 || spec.channels < 1 || spec.image_size < 1)
    fail(Exit::usage, "a network for {} classes, {} channels and images of {} px (all must be positive)", spec.classes,
         spec.channels, spec.image_size);
  if (!(spec.label_smoothing >= 0 && spec.label_smoothing < 1))
    fail(Exit::usage, "label smoothing {} (must be at least 0 and below 1)", spec.label_smoothing);
  if (!(spec.dropout < 1)) fail(Exit::usage, "dropout {} (must be at least 0 and below 1)", spec.dropout);
  if (!(spec.initialiser_std > 0))
    fail(Exit::usage, "initialiser deviation or bound {} (must be above 0)", spec.initialiser_std);
  if (!(spec.leaky_slope >= 0)) fail(Exit::usage, "leaky ReLU slope {} (must not be negative)", spec.leaky_slope);
  if (!(spec.norm_momentum >= 0 && spec.norm_momentum <= 1 && spec.norm_epsilon > 0))
    fail(Exit::usage, "batch norm momentum {} and epsilon {} (0 to 1, and above 0)", spec.norm_momentum,
         spec.norm_epsilon);
}

/// A variant that the model doesn't have must not be ignored in silence.
void refuse(const GraphSpec& spec, const char* what, const std::string& value) {
  if (!value.empty()) fail(Exit::usage, "{} has no {} (got '{}'); leave it out", spec.model, what, value);
}

void refuse_residual_variants(const GraphSpec& spec) {
  refuse(spec, "version", spec.version);
  refuse(spec, "stem", spec.stem);
  if (spec.zero_init_residual) fail(Exit::usage, "{} has no residual blocks to start at zero", spec.model);
}

void refuse_pooling(const GraphSpec& spec) { refuse(spec, "choice of pooling", spec.pooling); }

void refuse_alexnet_options(const GraphSpec& spec) {
  refuse(spec, "variant", spec.variant);
  if (spec.dropout >= 0) fail(Exit::usage, "{} has no dropout (got {}); leave it out", spec.model, spec.dropout);
}

}  // namespace

Graph build_graph(const GraphSpec& spec) {
  check_numbers(spec);
  if (spec.model == "alexnet") {
    refuse_residual_variants(spec);
    refuse_pooling(spec);
    return build_alexnet(spec);
  }
  refuse_alexnet_options(spec);
  if (spec.model == "mlp") {
    refuse_residual_variants(spec);
    refuse_pooling(spec);
    return build_mlp(spec);
  }
  if (spec.model == "lenet") {
    refuse_residual_variants(spec);
    return build_lenet(spec);
  }
  if (const auto name = parse_resnet(spec.model)) {
    if (name->suffix.empty() && is_imagenet_depth(name->depth)) {
      refuse_pooling(spec);
      return build_resnet(spec, name->depth);
    }
    if (const auto kind = find_cifar_kind(*name)) {
      refuse_pooling(spec);
      return build_resnet_cifar(spec, name->depth, *kind);
    }
  }
  fail_unknown(spec.model);
}

std::vector<std::string> model_names() {
  return {"mlp",
          "lenet",
          "alexnet",
          "resnet18",
          "resnet34",
          "resnet50",
          "resnet101",
          "resnet152",
          "resnet20",
          "resnet32",
          "resnet44",
          "resnet56",
          "resnet110",
          "resnet164",
          "resnet1001",
          "resnet50_cifar",
          "resnet101_cifar",
          "resnet152_cifar",
          "resnet110_bottleneck"};
}

std::string model_help() {
  return "mlp, lenet\n"
         "alexnet: variants 2012 (local response norm, two groups), ray (tanh in the dense layers), owt "
         "(torchvision's)\n"
         "resnet18, 34, 50, 101, 152: for ImageNet; v1, v1.5 (bottlenecks), v2\n"
         "resnetN, N = 6n+2 (20, 32, 44, 56, 110 ...): for CIFAR, basic blocks; v1, v2\n"
         "resnetN, N = 9n+2 (164, 1001 ...): for CIFAR, bottlenecks; v2, v1, v1.5\n"
         "resnetN_bottleneck: bottlenecks where N is 6n+2 too and below 164 (56, 110 ...)\n"
         "resnet50_cifar, 101_cifar, 152_cifar: the form for CIFAR of depths that ImageNet has too";
}

}  // namespace convoy
