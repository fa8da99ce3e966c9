// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

constexpr Pool reduce{.kernel = 3, .stride = 2},
    smooth{.mode = Pool::Mode::average, .kernel = 3, .stride = 1, .pad = 1};

/// A module writes its branches by these.
class Module {
 public:
  Module(GraphBuilder& net, std::string name) : net_(net), name_(std::move(name)) {}

  /// Convolution, batch norm and activation. `height` x `width` with padding that keeps the size.
  NodeId same(const char* part, NodeId x, Index out, int height, int width) {
    return unit(part, x, {.out = out, .kernel = height, .pad = height / 2, .kernel_w = width, .pad_w = width / 2});
  }
  NodeId halve(const char* part, NodeId x, Index out) {
    return unit(part, x, {.out = out, .kernel = 3, .stride = 2, .pad = 0});
  }
  NodeId unit(const char* part, NodeId x, const Convolution& attributes) {
    const std::string name = name_.empty() ? part : fmt::format("{}.{}", name_, part);
    x = net_.batch_norm(name + ".bn", net_.convolution(name + ".conv", x, attributes));
    return net_.activation(name + ".relu", x);
  }
  NodeId pool(NodeId x, const Pool& attributes) { return net_.apply(name_ + ".pool", x, attributes); }
  NodeId join(const std::string& part, std::vector<NodeId> branches) {
    return net_.apply(name_ + part, std::move(branches), Concatenation{});
  }

 private:
  GraphBuilder& net_;
  std::string name_;
};

NodeId append_a(GraphBuilder& net, const char* name, NodeId x, Index pooled) {
  Module m(net, name);
  const NodeId first = m.same("branch1x1", x, 64, 1, 1);
  const NodeId second = m.same("branch5x5_2", m.same("branch5x5_1", x, 48, 1, 1), 64, 5, 5);
  NodeId third = m.same("branch3x3dbl_2", m.same("branch3x3dbl_1", x, 64, 1, 1), 96, 3, 3);
  third = m.same("branch3x3dbl_3", third, 96, 3, 3);
  return m.join(".concat", {first, second, third, m.same("branch_pool", m.pool(x, smooth), pooled, 1, 1)});
}

NodeId append_b(GraphBuilder& net, const char* name, NodeId x) {
  Module m(net, name);
  const NodeId first = m.halve("branch3x3", x, 384);
  const NodeId second = m.same("branch3x3dbl_2", m.same("branch3x3dbl_1", x, 64, 1, 1), 96, 3, 3);
  return m.join(".concat", {first, m.halve("branch3x3dbl_3", second, 96), m.pool(x, reduce)});
}

NodeId append_c(GraphBuilder& net, const char* name, NodeId x, Index narrow) {
  Module m(net, name);
  const NodeId first = m.same("branch1x1", x, 192, 1, 1);
  NodeId second = m.same("branch7x7_2", m.same("branch7x7_1", x, narrow, 1, 1), narrow, 1, 7);
  second = m.same("branch7x7_3", second, 192, 7, 1);
  NodeId third = m.same("branch7x7dbl_2", m.same("branch7x7dbl_1", x, narrow, 1, 1), narrow, 7, 1);
  third = m.same("branch7x7dbl_4", m.same("branch7x7dbl_3", third, narrow, 1, 7), narrow, 7, 1);
  third = m.same("branch7x7dbl_5", third, 192, 1, 7);
  return m.join(".concat", {first, second, third, m.same("branch_pool", m.pool(x, smooth), 192, 1, 1)});
}

NodeId append_d(GraphBuilder& net, const char* name, NodeId x) {
  Module m(net, name);
  const NodeId first = m.halve("branch3x3_2", m.same("branch3x3_1", x, 192, 1, 1), 320);
  NodeId second = m.same("branch7x7x3_2", m.same("branch7x7x3_1", x, 192, 1, 1), 192, 1, 7);
  second = m.halve("branch7x7x3_4", m.same("branch7x7x3_3", second, 192, 7, 1), 192);
  return m.join(".concat", {first, second, m.pool(x, reduce)});
}

NodeId append_e(GraphBuilder& net, const char* name, NodeId x) {
  Module m(net, name);
  const NodeId first = m.same("branch1x1", x, 320, 1, 1);
  NodeId second = m.same("branch3x3_1", x, 384, 1, 1);
  second =
      m.join(".branch3x3_2", {m.same("branch3x3_2a", second, 384, 1, 3), m.same("branch3x3_2b", second, 384, 3, 1)});
  NodeId third = m.same("branch3x3dbl_2", m.same("branch3x3dbl_1", x, 448, 1, 1), 384, 3, 3);
  third = m.join(".branch3x3dbl_3",
                 {m.same("branch3x3dbl_3a", third, 384, 1, 3), m.same("branch3x3dbl_3b", third, 384, 3, 1)});
  return m.join(".concat", {first, second, third, m.same("branch_pool", m.pool(x, smooth), 192, 1, 1)});
}

/// torchvision's InceptionAux: 17x17 pixels at 299 become 5x5, then 1x1.
void append_head(GraphBuilder& net, NodeId x, float weight) {
  Module m(net, "AuxLogits");
  x = m.pool(x, {.mode = Pool::Mode::average, .kernel = 5, .stride = 3});
  x = m.unit("conv1", m.same("conv0", x, 128, 1, 1), {.out = 768, .kernel = 5, .pad = 0});
  x = net.apply("AuxLogits.flatten", net.apply("AuxLogits.avgpool", x, GlobalAveragePool{}), Flatten{});
  net.classify_aside("AuxLogits.fc", x, weight);
}

/// Szegedy et al. 2015 (arXiv 1512.00567), as torchvision has it.
Graph build_inception(const GraphSpec& spec) {
  GraphBuilder net(spec, ActivationKind::relu);
  Module stem(net, "");
  NodeId x = stem.halve("Conv2d_1a_3x3", net.input(), 32);
  x = stem.unit("Conv2d_2a_3x3", x, {.out = 32, .kernel = 3, .pad = 0});
  x = stem.same("Conv2d_2b_3x3", x, 64, 3, 3);
  x = net.apply("maxpool1", x, reduce);
  x = stem.unit("Conv2d_3b_1x1", x, {.out = 80, .kernel = 1, .pad = 0});
  x = stem.unit("Conv2d_4a_3x3", x, {.out = 192, .kernel = 3, .pad = 0});
  x = net.apply("maxpool2", x, reduce);
  x = append_a(net, "Mixed_5b", x, 32);
  x = append_a(net, "Mixed_5c", x, 64);
  x = append_a(net, "Mixed_5d", x, 64);
  x = append_b(net, "Mixed_6a", x);
  x = append_c(net, "Mixed_6b", x, 128);
  x = append_c(net, "Mixed_6c", x, 160);
  x = append_c(net, "Mixed_6d", x, 160);
  x = append_c(net, "Mixed_6e", x, 192);
  if (const auto aux_weight = aux_weight_of(spec, 0.4F)) append_head(net, x, *aux_weight);
  x = append_d(net, "Mixed_7a", x);
  x = append_e(net, "Mixed_7b", x);
  x = append_e(net, "Mixed_7c", x);
  x = net.apply("flatten", net.apply("avgpool", x, GlobalAveragePool{}), Flatten{});
  return net.classify("fc", net.apply("dropout", x, Dropout{dropout_of(spec, 0.5F)}), spec.model);
}

}  // namespace

Family inception_family() {
  return {.names = {"inception_v3"},
          .help = {"inception_v3: for images of at least 75 px (with --aux-heads of 299)"},
          .options = with_aux_options({dropout_option()}),
          .published = {{"inception_v3", 77.29}},
          .has = [](const std::string& model) { return model == "inception_v3"; },
          .usual_input =
              [](const GraphSpec&) {
                return UsualInput{1000, 3, 299};
              },
          .build = build_inception,
          .norms = [](const std::string&) { return Norms{.epsilon = 1e-3F}; },
          .centred_input = {"inception_v3"},
          .other_name = renamed({{"inceptionv3", "inception_v3"}})};
}

}  // namespace convoy
