// SPDX-License-Identifier: Apache-2.0
#include "network/models/family.hpp"
#include "network/models/inception_stage.hpp"

namespace convoy {
namespace {

using Stage = InceptionStage;
using Unit = InceptionUnit;

constexpr Unit square(Index out) { return {.out = out, .height = 3, .width = 3}; }
constexpr Unit strided(Index out) { return {.out = out, .height = 3, .width = 3, .stride = 2}; }
constexpr Unit valid(Index out) { return {.out = out, .height = 3, .width = 3, .valid = true}; }

NodeId append_stem(GraphBuilder& net, NodeId x) {
  x = Stage(net, "conv2d_1a").unit("", x, strided(32));
  x = Stage(net, "conv2d_2a").unit("", x, valid(32));
  x = Stage(net, "conv2d_2b").unit("", x, square(64));
  x = net.apply("maxpool_3a", x, inception_halving);
  x = Stage(net, "conv2d_3b").unit("", x, {.out = 80});
  x = Stage(net, "conv2d_4a").unit("", x, valid(192));
  x = net.apply("maxpool_5a", x, inception_halving);
  Stage mixed(net, "mixed_5b");
  return mixed.join({mixed.unit("branch0", x, {.out = 96}),
                     mixed.chain("branch1", x, {{.out = 48}, {.out = 64, .height = 5, .width = 5}}),
                     mixed.chain("branch2", x, {{.out = 64}, square(96), square(96)}), mixed.pooled(x, 64)});
}

NodeId append_35(Stage stage, NodeId x) {
  const NodeId sum =
      stage.residual(x,
                     {stage.unit("branch0", x, {.out = 32}), stage.chain("branch1", x, {{.out = 32}, square(32)}),
                      stage.chain("branch2", x, {{.out = 32}, square(48), square(64)})},
                     0.17F);
  return stage.activation(sum);
}

NodeId reduce_6a(Stage stage, NodeId x) {
  return stage.join({stage.unit("branch0", x, strided(384)),
                     stage.chain("branch1", x, {{.out = 256}, square(256), strided(384)}),
                     stage.pool("branch2", x, inception_halving)});
}

NodeId append_17(Stage stage, NodeId x) {
  const Unit row{.out = 160, .height = 1, .width = 7}, column{.out = 192, .height = 7, .width = 1};
  const NodeId sum = stage.residual(
      x, {stage.unit("branch0", x, {.out = 192}), stage.chain("branch1", x, {{.out = 128}, row, column})}, 0.1F);
  return stage.activation(sum);
}

NodeId reduce_7a(Stage stage, NodeId x) {
  return stage.join({stage.chain("branch0", x, {{.out = 256}, strided(384)}),
                     stage.chain("branch1", x, {{.out = 256}, strided(288)}),
                     stage.chain("branch2", x, {{.out = 256}, square(288), strided(320)}),
                     stage.pool("branch3", x, inception_halving)});
}

NodeId append_8(Stage stage, NodeId x, float scale) {
  const Unit row{.out = 224, .height = 1, .width = 3}, column{.out = 256, .height = 3, .width = 1};
  return stage.residual(
      x, {stage.unit("branch0", x, {.out = 192}), stage.chain("branch1", x, {{.out = 192}, row, column})}, scale);
}

/// Szegedy et al. 2016 (arXiv 1602.07261), by timm's names.
Graph build_inception_resnet_v2(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  const auto numbered = [&](const char* part, int i) { return Stage(net, fmt::format("{}.{}", part, i)); };
  NodeId x = append_stem(net, net.input());
  for (int i = 0; i < 10; ++i) x = append_35(numbered("repeat", i), x);
  x = reduce_6a(Stage(net, "mixed_6a"), x);
  for (int i = 0; i < 20; ++i) x = append_17(numbered("repeat_1", i), x);
  x = reduce_7a(Stage(net, "mixed_7a"), x);
  for (int i = 0; i < 9; ++i) {
    Stage stage = numbered("repeat_2", i);
    x = stage.activation(append_8(stage, x, 0.2F));
  }
  x = append_8(Stage(net, "block8"), x, 1);  // without an activation
  x = Stage(net, "conv2d_7b").unit("", x, {.out = 1536});
  x = net.apply("flatten", net.apply("global_pool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("classif", net.apply("head_drop", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

}  // namespace

Family inception_resnet_v2_family() {
  return {.names = {"inception_resnet_v2"},
          .help = {"inception_resnet_v2: for images of at least 75 px, by timm's names"},
          .options = {dropout_option()},
          .has = [](const std::string& model) { return model == "inception_resnet_v2"; },
          .usual_input =
              [](const GraphSpec&) {
                return UsualInput{1000, 3, 299};
              },
          .build = build_inception_resnet_v2,
          .norms = [](const std::string&) { return Norms{.epsilon = 1e-3F}; },
          .centred_input = {"inception_resnet_v2"}};
}

}  // namespace convoy
