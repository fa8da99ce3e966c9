// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

constexpr Pool pool{.kernel = 3, .stride = 2, .ceil = true};

NodeId append_unit(GraphBuilder& net, const std::string& name, NodeId x, const Convolution& attributes) {
  x = net.batch_norm(name + ".bn", net.convolution(name + ".conv", x, attributes));
  return net.activation(name + ".relu", x);
}

/// Channels of the four branches; `reduced`: of the 1x1 convolutions before the larger ones.
struct Inception {
  const char* name;
  Index narrow, reduced3, out3, reduced5, out5, pooled;
};

NodeId append_inception(GraphBuilder& net, NodeId x, const Inception& module) {
  const auto unit = [&](const char* part, NodeId from, Index out, int kernel) {
    return append_unit(net, fmt::format("{}.{}", module.name, part), from,
                       {.out = out, .kernel = kernel, .pad = kernel / 2});
  };
  const NodeId first = unit("branch1", x, module.narrow, 1);
  const NodeId second = unit("branch2.1", unit("branch2.0", x, module.reduced3, 1), module.out3, 3);
  // The paper has 5x5 here; torchvision kept the 3x3 that TensorFlow's published weights came with.
  const NodeId third = unit("branch3.1", unit("branch3.0", x, module.reduced5, 1), module.out5, 3);
  const NodeId pooled =
      net.apply(fmt::format("{}.branch4.0", module.name), x, Pool{.kernel = 3, .stride = 1, .pad = 1, .ceil = true});
  const NodeId fourth = unit("branch4.1", pooled, module.pooled, 1);
  return net.apply(fmt::format("{}.concat", module.name), {first, second, third, fourth}, Concatenation{});
}

/// torchvision's InceptionAux. The paper's average is over 5x5 with a stride of 3, which makes the same 4x4 of the
/// 14x14 at 224 pixels.
void append_head(GraphBuilder& net, const GraphSpec& spec, const std::string& name, NodeId x, float weight) {
  x = net.apply(name + ".pool", x, AdaptiveAveragePool{.size = 4});
  x = append_unit(net, name + ".conv", x, {.out = 128, .kernel = 1, .pad = 0});
  x = net.apply(name + ".flatten", x, Flatten{});
  x = net.activation(name + ".relu", net.linear(name + ".fc1", x, 1024));
  net.classify_aside(name + ".fc2", net.apply(name + ".dropout", x, Dropout{dropout_of(spec, 0.7F)}), weight);
}

/// Szegedy et al. 2014 (arXiv 1409.4842) with batch norm, as torchvision has it.
Graph build_googlenet(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  const std::optional<float> aux_weight = aux_weight_of(spec, 0.3F);
  NodeId x = append_unit(net, "conv1", net.input(), {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.apply("maxpool1", x, pool);
  x = append_unit(net, "conv2", x, {.out = 64, .kernel = 1, .pad = 0});
  x = append_unit(net, "conv3", x, {.out = 192, .kernel = 3});
  x = net.apply("maxpool2", x, pool);
  x = append_inception(net, x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = append_inception(net, x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = net.apply("maxpool3", x, pool);
  x = append_inception(net, x, {"inception4a", 192, 96, 208, 16, 48, 64});
  if (aux_weight) append_head(net, spec, "aux1", x, *aux_weight);
  x = append_inception(net, x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = append_inception(net, x, {"inception4c", 128, 128, 256, 24, 64, 64});
  x = append_inception(net, x, {"inception4d", 112, 144, 288, 32, 64, 64});
  if (aux_weight) append_head(net, spec, "aux2", x, *aux_weight);
  x = append_inception(net, x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = net.apply("maxpool4", x, Pool{.kernel = 2, .stride = 2, .ceil = true});
  x = append_inception(net, x, {"inception5a", 256, 160, 320, 32, 128, 128});
  x = append_inception(net, x, {"inception5b", 384, 192, 384, 48, 128, 128});
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", net.apply("dropout", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

}  // namespace

Family googlenet_family() {
  return {.names = {"googlenet"},
          .help = {"googlenet: with batch norm; auxiliary classifiers with --aux-heads"},
          .options = with_aux_options({dropout_option()}),
          .published = {{"googlenet", 69.78}},
          .has = [](const std::string& model) { return model == "googlenet"; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_googlenet,
          .norms = [](const std::string&) { return Norms{.epsilon = 1e-3F}; },
          .centred_input = {"googlenet"}};
}

}  // namespace convoy
