// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <regex>

#include "network/models/residual.hpp"

namespace convoy {
namespace {

struct Form {
  int depth = 0, width = 0;
};

/// `wrn28_10`: depth 6n+4, times as wide.
std::optional<Form> find_form(const std::string& model) {
  std::smatch parts;
  if (!std::regex_match(model, parts, std::regex("wrn(\\d{1,3})_(\\d{1,2})"))) return std::nullopt;
  const Form form{std::stoi(parts[1]), std::stoi(parts[2])};
  if (form.depth < 10 || form.depth % 6 != 4 || form.width < 1) return std::nullopt;
  return form;
}

/// Zagoruyko and Komodakis 2016 (arXiv 1605.07146), table 1: pre-activation basic blocks without dropout.
Graph build_wide_resnet(const GraphSpec& spec) {
  const Form form = *find_form(spec.model);
  const int n = (form.depth - 4) / 6;
  const Residual residual{.order = Order::pre_activation,
                          .blocks = {n, n, n},
                          .widths = {Index{16} * form.width, Index{32} * form.width, Index{64} * form.width}};
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.convolution("conv1", net.input(), {.out = 16, .kernel = 3});
  x = append_stages(net, x, residual, spec);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", x, spec.model);
}

}  // namespace

Family wide_resnet_family() {
  std::vector<ModelOption> options = residual_options();
  std::erase_if(options, [](const ModelOption& option) { return option.name != "zero-init-residual"; });
  return {.names = {"wrn16_4", "wrn28_10", "wrn40_4"},
          .help = {"wrnN_K, N = 6n+4 (wrn16_4, wrn28_10, wrn40_4 ...): wide ResNet for CIFAR, K times as wide"},
          .options = options,
          .has = [](const std::string& model) { return find_form(model).has_value(); },
          .usual_input = [](const GraphSpec&) { return cifar_input; },
          .build = build_wide_resnet};
}

}  // namespace convoy
