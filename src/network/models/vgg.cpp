// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>

#include "network/builder.hpp"
#include "network/models/family.hpp"

namespace convoy {
namespace {

/// Convolutions of the five stages, each of which ends with pooling: columns A, B, D and E of the paper's table 1.
struct Form {
  const char* name;
  std::array<int, 5> convolutions;
};
constexpr std::array<Form, 4> forms = {
    {{"vgg11", {1, 1, 2, 2, 2}}, {"vgg13", {2, 2, 2, 2, 2}}, {"vgg16", {2, 2, 3, 3, 3}}, {"vgg19", {2, 2, 4, 4, 4}}}};
constexpr std::array<Index, 5> widths = {64, 128, 256, 512, 512};

const Form* form_of(const std::string& model) {
  return find_form(forms, model.ends_with("_bn") ? model.substr(0, model.size() - 3) : model);
}

/// Simonyan and Zisserman 2014 (arXiv 1409.1556); names and the variant with batch norm are torchvision's. torchvision
/// averages to 7 x 7 before the dense layers, which is the identity at 224 pixels; here they take what is left.
Graph build_vgg(const GraphSpec& spec) {
  const Form& form = *form_of(spec.model);
  const bool norm = spec.model.ends_with("_bn");
  GraphBuilder net(spec, ActivationKind::relu);
  NodeId x = net.input();
  int next = 0;  // of torchvision's sequence of modules
  const auto name = [&] { return fmt::format("features.{}", next++); };
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    for (int i = 0; i < form.convolutions[stage]; ++i) {
      x = net.convolution(name(), x, {.out = widths[stage], .kernel = 3, .bias = true});
      if (norm) x = net.batch_norm(name(), x);
      x = net.activation(name(), x);
    }
    x = net.apply(name(), x, Pool{});
  }
  x = net.apply("flatten", x, Flatten{});
  for (const int first : {0, 3}) {
    x = net.activation(fmt::format("classifier.{}", first + 1),
                       net.linear(fmt::format("classifier.{}", first), x, 4096));
    x = net.apply(fmt::format("classifier.{}", first + 2), x, Dropout{dropout_of(spec, 0.5F)});
  }
  return net.classify("classifier.6", x, spec.model);
}

}  // namespace

Family vgg_family() {
  return {.names = {"vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"},
          .help = {"vgg11, 13, 16, 19, and vgg11_bn ... with batch norm"},
          .options = {dropout_option()},
          .published = {{"vgg11", 69.02},
                        {"vgg13", 69.93},
                        {"vgg16", 71.59},
                        {"vgg19", 72.38},
                        {"vgg11_bn", 70.37},
                        {"vgg13_bn", 71.59},
                        {"vgg16_bn", 73.36},
                        {"vgg19_bn", 74.22}},
          .has = [](const std::string& model) { return form_of(model) != nullptr; },
          .usual_input = [](const GraphSpec&) { return imagenet_input; },
          .build = build_vgg};
}

}  // namespace convoy
