// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// `growth`: channels that each layer adds; the first convolution makes twice as many.
struct Form {
  const char* name;
  Index growth;
  std::array<int, 4> layers;
};
constexpr std::array<Form, 4> forms = {{{"densenet121", 32, {6, 12, 24, 16}},
                                        {"densenet161", 48, {6, 12, 36, 24}},
                                        {"densenet169", 32, {6, 12, 32, 32}},
                                        {"densenet201", 32, {6, 12, 48, 32}}}};

/// Huang et al. 2017 (arXiv 1608.06993), DenseNet-BC: bottlenecks of 4 x growth, transitions that halve the channels.
/// Names are torchvision's.
Graph build_densenet(const GraphSpec& spec) {
  const Form& form = *find_form(forms, spec.model);
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x =
      net.convolution("features.conv0", net.input(), {.out = 2 * form.growth, .kernel = 7, .stride = 2, .pad = 3});
  x = net.activation("features.relu0", net.batch_norm("features.norm0", x));
  x = net.apply("features.pool0", x, Pool{.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t block = 1; block <= form.layers.size(); ++block) {
    for (int layer = 1; layer <= form.layers[block - 1]; ++layer) {
      const std::string name = fmt::format("features.denseblock{}.denselayer{}", block, layer);
      NodeId y = net.activation(name + ".relu1", net.batch_norm(name + ".norm1", x));
      y = net.convolution(name + ".conv1", y, {.out = 4 * form.growth, .kernel = 1, .pad = 0});
      y = net.activation(name + ".relu2", net.batch_norm(name + ".norm2", y));
      y = net.convolution(name + ".conv2", y, {.out = form.growth, .kernel = 3});
      x = net.apply(name + ".concat", {x, y}, Concatenation{});
    }
    if (block == form.layers.size()) break;
    const std::string name = fmt::format("features.transition{}", block);
    x = net.activation(name + ".relu", net.batch_norm(name + ".norm", x));
    x = net.convolution(name + ".conv", x, {.out = net.channels(x) / 2, .kernel = 1, .pad = 0});
    x = net.apply(name + ".pool", x, Pool{.mode = Pool::Mode::average});
  }
  x = net.activation("features.relu5", net.batch_norm("features.norm5", x));
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("classifier", x, spec.model);
}

}  // namespace

Family densenet_family() {
  return {.names = {"densenet121", "densenet161", "densenet169", "densenet201"},
          .help = {"densenet121, 161, 169, 201"},
          .published = {{"densenet121", 74.43}, {"densenet161", 77.14}, {"densenet169", 75.60}, {"densenet201", 76.90}},
          .has = [](const std::string& model) { return find_form(forms, model) != nullptr; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_densenet};
}

}  // namespace convoy
