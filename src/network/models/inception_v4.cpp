// SPDX-License-Identifier: Apache-2.0
#include "network/models/family.hpp"
#include "network/models/inception_stage.hpp"

namespace convoy {
namespace {

using Unit = InceptionUnit;
constexpr Pool halving = inception_halving;

/// The number `index` of timm's list `features`.
class Stage : public InceptionStage {
 public:
  Stage(GraphBuilder& net, int index) : InceptionStage(net, fmt::format("features.{}", index)) {}
};

NodeId append_stem(GraphBuilder& net, NodeId x) {
  x = Stage(net, 0).unit("", x, {.out = 32, .height = 3, .width = 3, .stride = 2});
  x = Stage(net, 1).unit("", x, {.out = 32, .height = 3, .width = 3, .valid = true});
  x = Stage(net, 2).unit("", x, {.out = 64, .height = 3, .width = 3});
  Stage a(net, 3);
  x = a.join({a.pool("maxpool", x, halving), a.unit("conv", x, {.out = 96, .height = 3, .width = 3, .stride = 2})});
  Stage b(net, 4);
  const Unit last{.out = 96, .height = 3, .width = 3, .valid = true};
  x = b.join(
      {b.chain("branch0", x, {{.out = 64}, last}),
       b.chain("branch1", x,
               {{.out = 64}, {.out = 64, .height = 1, .width = 7}, {.out = 64, .height = 7, .width = 1}, last})});
  Stage c(net, 5);
  return c.join({c.unit("conv", x, {.out = 192, .height = 3, .width = 3, .stride = 2}), c.pool("maxpool", x, halving)});
}

NodeId append_a(Stage stage, NodeId x) {
  const Unit wide{.out = 96, .height = 3, .width = 3};
  return stage.join({stage.unit("branch0", x, {.out = 96}), stage.chain("branch1", x, {{.out = 64}, wide}),
                     stage.chain("branch2", x, {{.out = 64}, wide, wide}), stage.pooled(x, 96)});
}

NodeId reduce_a(Stage stage, NodeId x) {
  return stage.join(
      {stage.unit("branch0", x, {.out = 384, .height = 3, .width = 3, .stride = 2}),
       stage.chain(
           "branch1", x,
           {{.out = 192}, {.out = 224, .height = 3, .width = 3}, {.out = 256, .height = 3, .width = 3, .stride = 2}}),
       stage.pool("branch2", x, halving)});
}

NodeId append_b(Stage stage, NodeId x) {
  const auto row = [](Index out) { return Unit{.out = out, .height = 1, .width = 7}; };
  const auto column = [](Index out) { return Unit{.out = out, .height = 7, .width = 1}; };
  return stage.join(
      {stage.unit("branch0", x, {.out = 384}), stage.chain("branch1", x, {{.out = 192}, row(224), column(256)}),
       stage.chain("branch2", x, {{.out = 192}, column(192), row(224), column(224), row(256)}), stage.pooled(x, 128)});
}

NodeId reduce_b(Stage stage, NodeId x) {
  return stage.join({stage.chain("branch0", x, {{.out = 192}, {.out = 192, .height = 3, .width = 3, .stride = 2}}),
                     stage.chain("branch1", x,
                                 {{.out = 256},
                                  {.out = 256, .height = 1, .width = 7},
                                  {.out = 320, .height = 7, .width = 1},
                                  {.out = 320, .height = 3, .width = 3, .stride = 2}}),
                     stage.pool("branch2", x, halving)});
}

NodeId append_c(Stage stage, NodeId x) {
  const auto both = [&](const std::string& name, NodeId from) {
    const NodeId row = stage.unit(name + "a", from, {.out = 256, .height = 1, .width = 3});
    const NodeId column = stage.unit(name + "b", from, {.out = 256, .height = 3, .width = 1});
    return stage.join({row, column}, ("." + name).c_str());
  };
  const NodeId first = stage.unit("branch0", x, {.out = 256});
  const NodeId second = both("branch1_1", stage.unit("branch1_0", x, {.out = 384}));
  NodeId third = stage.unit("branch2_0", x, {.out = 384});
  third = stage.unit("branch2_1", third, {.out = 448, .height = 3, .width = 1});
  third = both("branch2_3", stage.unit("branch2_2", third, {.out = 512, .height = 1, .width = 3}));
  return stage.join({first, second, third, stage.pooled(x, 256)});
}

/// Szegedy et al. 2016 (arXiv 1602.07261), by timm's names.
Graph build_inception_v4(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = append_stem(net, net.input());
  int index = 6;
  for (int i = 0; i < 4; ++i) x = append_a(Stage(net, index++), x);
  x = reduce_a(Stage(net, index++), x);
  for (int i = 0; i < 7; ++i) x = append_b(Stage(net, index++), x);
  x = reduce_b(Stage(net, index++), x);
  for (int i = 0; i < 3; ++i) x = append_c(Stage(net, index++), x);
  x = net.apply("flatten", net.apply("global_pool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("last_linear", net.apply("head_drop", x, Dropout{dropout_of(spec, 0.2F)}), spec.model);
}

}  // namespace

Family inception_v4_family() {
  return {.names = {"inception_v4"},
          .help = {"inception_v4: for images of at least 75 px, by timm's names"},
          .options = {dropout_option()},
          .has = [](const std::string& model) { return model == "inception_v4"; },
          .usual_input =
              [](const GraphSpec&) {
                return UsualInput{1000, 3, 299};
              },
          .build = build_inception_v4,
          .norms = [](const std::string&) { return Norms{.epsilon = 1e-3F}; },
          .centred_input = {"inception_v4"},
          .other_name = renamed({{"inceptionv4", "inception_v4"}})};
}

}  // namespace convoy
