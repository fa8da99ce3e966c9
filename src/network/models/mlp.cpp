// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstddef>

#include "core/errors.hpp"
#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

constexpr const char* usual_widths = "128";

/// `32,16` -> 32, 16. Empty text: no hidden layer.
std::vector<Index> hidden_widths(const GraphSpec& spec) {
  const auto given = spec.options.find("hidden");
  const std::string text = given == spec.options.end() ? usual_widths : given->second;
  std::vector<Index> widths;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    const auto [stop, error] = std::from_chars(at, end, widths.emplace_back());
    if (error != std::errc{} || widths.back() < 1)
      fail(Exit::usage, "hidden layer {} of mlp has width {} (need at least 1)", widths.size(), widths.back());
    at = stop == end ? end : stop + 1;
  }
  return widths;
}

/// flatten, then hidden layers with the activation (ReLU), then the classes.
Graph build_mlp(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.apply("flatten", net.input(), Flatten{});
  std::size_t layer = 1;
  for (const Index width : hidden_widths(spec)) {
    x = net.linear("fc" + std::to_string(layer), x, width);
    x = net.activation("act" + std::to_string(layer), x);
    ++layer;
  }
  return net.classify("fc" + std::to_string(layer), x, "mlp");
}

}  // namespace

Family mlp_family() {
  return {.names = {"mlp"},
          .options = {{.name = "hidden",
                       .form = ModelOption::Form::counts,
                       .otherwise = usual_widths,
                       .help = "mlp: widths of the hidden layers"}},
          .has = [](const std::string& model) { return model == "mlp"; },
          .usual_input = [](const GraphSpec&) { return mnist_input; },
          .build = build_mlp};
}

}  // namespace convoy
