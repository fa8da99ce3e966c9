// SPDX-License-Identifier: Apache-2.0
// Names, variants and initialisers of all models; residual_test.cpp has the structure of residual blocks.
#include "network/models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "network/layers.hpp"
#include "network/models/family.hpp"
#include "network/plan.hpp"
#include "unit/network/expect_error.hpp"

namespace convoy {
namespace {

using Fill = Initialiser::Fill;

std::map<std::string, ParameterSpec> parameters_of(const Graph& graph) {
  std::map<std::string, ParameterSpec> parameters;
  for (const Node& node : graph.nodes)
    for (const ParameterSpec& parameter : node.parameters) parameters[parameter.name] = parameter;
  return parameters;
}

TEST(Models, EveryListedNameBuildsAValidPlan) {
  for (const std::string& name : model_names()) {
    const Index size = name == "alexnet" ? 64 : name.starts_with("inception_") && name != "inception_bn" ? 75 : 32;
    const Graph graph = build_graph({.model = name, .classes = 7, .image_size = size});
    EXPECT_EQ(graph.model.rfind(name, 0), 0U) << graph.model;
    EXPECT_EQ(infer_shapes(graph, size, size).at(static_cast<std::size_t>(graph.logits())).c, 7) << name;
    EXPECT_NO_THROW(make_plan(graph, {})) << name;
  }
}

TEST(Models, FullNameTellsVersionAndStem) {
  EXPECT_EQ(build_graph({.model = "resnet50"}).model, "resnet50 v1.5");
  EXPECT_EQ(build_graph({.model = "resnet18"}).model, "resnet18 v1");
  EXPECT_EQ(build_graph({.model = "resnet18", .options = {{"resnet-version", "v2"}, {"stem", "small"}}}).model,
            "resnet18 v2 (small stem)");
  EXPECT_EQ(build_graph({.model = "resnet20"}).model, "resnet20 v1");
  for (const char* basic : {"resnet18", "resnet20"}) {
    EXPECT_EQ(build_graph({.model = basic, .options = {{"resnet-version", "v1.5"}}}).model, std::string(basic) + " v1");
  }
  EXPECT_EQ(build_graph({.model = "resnet164"}).model, "resnet164 v2");
}

TEST(Models, Resnet18HasTorchvisionsKeys) {
  // The keys of torchvision's resnet18 state dict, without running statistics and counters.
  const std::vector<std::pair<std::string, std::vector<Index>>> keys{{"conv1.weight", {64, 3, 7, 7}},
                                                                     {"bn1.weight", {64}},
                                                                     {"bn1.bias", {64}},
                                                                     {"layer1.0.conv1.weight", {64, 64, 3, 3}},
                                                                     {"layer1.0.bn1.weight", {64}},
                                                                     {"layer1.0.bn1.bias", {64}},
                                                                     {"layer1.0.conv2.weight", {64, 64, 3, 3}},
                                                                     {"layer1.0.bn2.weight", {64}},
                                                                     {"layer1.0.bn2.bias", {64}},
                                                                     {"layer1.1.conv1.weight", {64, 64, 3, 3}},
                                                                     {"layer1.1.bn1.weight", {64}},
                                                                     {"layer1.1.bn1.bias", {64}},
                                                                     {"layer1.1.conv2.weight", {64, 64, 3, 3}},
                                                                     {"layer1.1.bn2.weight", {64}},
                                                                     {"layer1.1.bn2.bias", {64}},
                                                                     {"layer2.0.conv1.weight", {128, 64, 3, 3}},
                                                                     {"layer2.0.bn1.weight", {128}},
                                                                     {"layer2.0.bn1.bias", {128}},
                                                                     {"layer2.0.conv2.weight", {128, 128, 3, 3}},
                                                                     {"layer2.0.bn2.weight", {128}},
                                                                     {"layer2.0.bn2.bias", {128}},
                                                                     {"layer2.0.downsample.0.weight", {128, 64, 1, 1}},
                                                                     {"layer2.0.downsample.1.weight", {128}},
                                                                     {"layer2.0.downsample.1.bias", {128}},
                                                                     {"layer2.1.conv1.weight", {128, 128, 3, 3}},
                                                                     {"layer2.1.bn1.weight", {128}},
                                                                     {"layer2.1.bn1.bias", {128}},
                                                                     {"layer2.1.conv2.weight", {128, 128, 3, 3}},
                                                                     {"layer2.1.bn2.weight", {128}},
                                                                     {"layer2.1.bn2.bias", {128}},
                                                                     {"layer3.0.conv1.weight", {256, 128, 3, 3}},
                                                                     {"layer3.0.bn1.weight", {256}},
                                                                     {"layer3.0.bn1.bias", {256}},
                                                                     {"layer3.0.conv2.weight", {256, 256, 3, 3}},
                                                                     {"layer3.0.bn2.weight", {256}},
                                                                     {"layer3.0.bn2.bias", {256}},
                                                                     {"layer3.0.downsample.0.weight", {256, 128, 1, 1}},
                                                                     {"layer3.0.downsample.1.weight", {256}},
                                                                     {"layer3.0.downsample.1.bias", {256}},
                                                                     {"layer3.1.conv1.weight", {256, 256, 3, 3}},
                                                                     {"layer3.1.bn1.weight", {256}},
                                                                     {"layer3.1.bn1.bias", {256}},
                                                                     {"layer3.1.conv2.weight", {256, 256, 3, 3}},
                                                                     {"layer3.1.bn2.weight", {256}},
                                                                     {"layer3.1.bn2.bias", {256}},
                                                                     {"layer4.0.conv1.weight", {512, 256, 3, 3}},
                                                                     {"layer4.0.bn1.weight", {512}},
                                                                     {"layer4.0.bn1.bias", {512}},
                                                                     {"layer4.0.conv2.weight", {512, 512, 3, 3}},
                                                                     {"layer4.0.bn2.weight", {512}},
                                                                     {"layer4.0.bn2.bias", {512}},
                                                                     {"layer4.0.downsample.0.weight", {512, 256, 1, 1}},
                                                                     {"layer4.0.downsample.1.weight", {512}},
                                                                     {"layer4.0.downsample.1.bias", {512}},
                                                                     {"layer4.1.conv1.weight", {512, 512, 3, 3}},
                                                                     {"layer4.1.bn1.weight", {512}},
                                                                     {"layer4.1.bn1.bias", {512}},
                                                                     {"layer4.1.conv2.weight", {512, 512, 3, 3}},
                                                                     {"layer4.1.bn2.weight", {512}},
                                                                     {"layer4.1.bn2.bias", {512}},
                                                                     {"fc.weight", {1000, 512}},
                                                                     {"fc.bias", {1000}}};
  std::size_t at = 0;
  for (const Node& node : build_graph({.model = "resnet18"}).nodes)
    for (const ParameterSpec& parameter : node.parameters) {
      ASSERT_LT(at, keys.size());
      EXPECT_EQ(parameter.name, keys[at].first);
      EXPECT_EQ(parameter.shape, keys[at].second) << parameter.name;
      ++at;
    }
  EXPECT_EQ(at, keys.size());
}

TEST(Models, DefaultInitialisersFollowTorchvision) {
  const auto resnet = parameters_of(build_graph({.model = "resnet50"}));
  EXPECT_EQ(resnet.at("layer3.4.conv2.weight").initialiser.fill, Fill::he_fan_out_normal);
  EXPECT_EQ(resnet.at("bn1.weight").initialiser.fill, Fill::ones);
  EXPECT_EQ(resnet.at("bn1.bias").initialiser.fill, Fill::zeros);
  EXPECT_EQ(resnet.at("fc.weight").initialiser.fill, Fill::uniform);
  EXPECT_FLOAT_EQ(resnet.at("fc.weight").initialiser.value, 1 / std::sqrt(2048.0F));
  EXPECT_EQ(resnet.at("fc.bias").initialiser.fill, Fill::zeros);
  EXPECT_EQ(parameters_of(build_graph({.model = "lenet"})).at("fc1.weight").initialiser.fill, Fill::xavier_uniform);
  EXPECT_EQ(parameters_of(build_graph({.model = "mlp"})).at("fc1.weight").initialiser.fill, Fill::he_fan_in_normal);
}

TEST(Models, InitialiserOptionChangesFiltersOnly) {
  for (const auto& [name, fill] : {std::pair<std::string, Fill>{"xavier", Fill::xavier_uniform},
                                   {"normal", Fill::normal},
                                   {"truncated_normal", Fill::truncated_normal},
                                   {"uniform", Fill::uniform}})
    for (const auto& [key, parameter] :
         parameters_of(build_graph({.model = "resnet18", .initialiser = name, .initialiser_std = 0.25F}))) {
      if (parameter.kind != Kind::weight) continue;
      EXPECT_EQ(parameter.initialiser.fill, fill) << key;
      if (name != "xavier") {
        EXPECT_EQ(parameter.initialiser.value, 0.25F) << key;
      }
    }
  const auto he = parameters_of(build_graph({.model = "resnet18", .initialiser = "he"}));
  EXPECT_EQ(he.at("fc.weight").initialiser.fill, Fill::he_fan_in_normal);
  EXPECT_EQ(he.at("bn1.weight").initialiser.fill, Fill::ones);
}

/// torchvision 0.29: BasicConv2d of GoogLeNet and Inception v3 has eps=0.001, norm_layer of MobileNet v3 and of
/// EfficientNet from b5 on eps=0.001 and momentum=0.01, EfficientNet v2 eps=0.001, MNASNet momentum=1-0.9997. timm 1.0:
/// norm_eps of Inception v4 and Inception-ResNet v2 is 1e-3.
TEST(Models, BatchNormsAreThoseOfThePublishedNetwork) {
  struct Published {
    const char* model;
    float epsilon, momentum;
  };
  for (const Published& one :
       {Published{"resnet18", 1e-5F, 0.1F}, Published{"mobilenet_v2", 1e-5F, 0.1F},
        Published{"efficientnet_b0", 1e-5F, 0.1F}, Published{"efficientnet_b4", 1e-5F, 0.1F},
        Published{"efficientnet_b5", 1e-3F, 0.01F}, Published{"efficientnet_b7", 1e-3F, 0.01F},
        Published{"mnasnet0_5", 1e-5F, 3e-4F}, Published{"efficientnet_v2_s", 1e-3F, 0.1F},
        Published{"efficientnet_v2_l", 1e-3F, 0.1F}, Published{"mobilenet_v3_small", 1e-3F, 0.01F},
        Published{"mobilenet_v3_large", 1e-3F, 0.01F}, Published{"googlenet", 1e-3F, 0.1F},
        Published{"inception_v3", 1e-3F, 0.1F}, Published{"inception_v4", 1e-3F, 0.1F},
        Published{"inception_resnet_v2", 1e-3F, 0.1F}, Published{"inception_bn", 1e-5F, 0.1F}}) {
    int norms = 0;
    for (const Node& node : build_graph({.model = one.model}).nodes)
      if (const auto* norm = as<BatchNorm>(node)) {
        ++norms;
        EXPECT_EQ(norm->epsilon, one.epsilon) << one.model;
        EXPECT_EQ(norm->momentum, one.momentum) << one.model;
      }
    EXPECT_GT(norms, 10) << one.model;
    EXPECT_EQ(norms_of({.model = one.model, .norm_epsilon = 1e-4F}).epsilon, 1e-4F) << "what is asked for counts";
  }
}

/// torchvision 0.29: transform_input of GoogLeNet and Inception v3, and a mean of 0.5 in the transforms of EfficientNet
/// v2 L.
TEST(Models, InputIsThatOfThePublishedNetwork) {
  for (const char* model : {"googlenet", "inception_v3", "inception_v4", "inception_resnet_v2", "efficientnet_v2_l"})
    EXPECT_TRUE(takes_centred_input(model)) << model;
  for (const char* model : {"efficientnet_v2_m", "efficientnet_b0", "resnet50", "inception_bn", "no such network"})
    EXPECT_FALSE(takes_centred_input(model)) << model;
}

TEST(Models, OptionsReachTheNodes) {
  const Graph graph = build_graph({.model = "resnet20",
                                   .activation = "leaky_relu",
                                   .leaky_slope = 0.2F,
                                   .norm_momentum = 0.05F,
                                   .norm_epsilon = 1e-3F,
                                   .label_smoothing = 0.1F});
  for (const Node& node : graph.nodes) {
    if (const auto* activation = as<Activation>(node)) {
      EXPECT_EQ(activation->kind, ActivationKind::leaky_relu);
      EXPECT_EQ(activation->slope, 0.2F);
    }
    if (const auto* norm = as<BatchNorm>(node)) {
      EXPECT_EQ(norm->momentum, 0.05F);
      EXPECT_EQ(norm->epsilon, 1e-3F);
    }
  }
  EXPECT_EQ(as<Loss>(graph.nodes.back())->label_smoothing, 0.1F);
}

TEST(Models, AuxiliaryHeadsHaveLossesOfTheirOwn) {
  const auto weights = [](const GraphSpec& spec) {
    std::vector<float> of_losses;
    for (const Node& node : build_graph(spec).nodes)
      if (const auto* loss = as<Loss>(node)) of_losses.push_back(loss->weight);
    return of_losses;
  };
  using Weights = std::vector<float>;
  EXPECT_EQ(weights({.model = "googlenet"}), Weights{1});
  EXPECT_EQ(weights({.model = "googlenet", .options = {{"aux-heads", "true"}}}), (Weights{0.3F, 0.3F, 1}));
  EXPECT_EQ(weights({.model = "inception_v3", .image_size = 299, .options = {{"aux-heads", "true"}}}),
            (Weights{0.4F, 1}));
  EXPECT_EQ(weights({.model = "googlenet", .options = {{"aux-heads", "true"}, {"aux-weight", "0.5"}}}),
            (Weights{0.5F, 0.5F, 1}));
  expect_usage_error(
      [] {
        build_graph({.model = "googlenet", .options = {{"aux-weight", "0.5"}}});
      },
      {"--aux-weight", "without --aux-heads"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"aux-heads", "true"}}});
      },
      {"resnet50 has no auxiliary classifiers"});
}

/// Matrix rules leave the layers that make classes to others, a backbone ends where the heads begin, and a file of
/// layers can't describe them.
TEST(Models, AuxiliaryHeadsAreNoPartOfTheBody) {
  const Graph graph = build_graph({.model = "googlenet", .options = {{"aux-heads", "true"}}});
  const Plan plan = make_plan(graph, {.frozen = {"backbone"}});
  for (const Parameter& row : plan.table.rows) {
    EXPECT_EQ(row.makes_classes, row.name.find("fc2.") != std::string::npos || row.name.starts_with("fc.")) << row.name;
    EXPECT_EQ(row.trainable, row.name.starts_with("aux") || row.name.starts_with("fc.")) << row.name;
  }
  EXPECT_EQ(last_layer(graph)->name, "fc");
  expect_usage_error([&] { layers_of(graph); }, {"a network file", "leave --aux-heads out"});
}

TEST(Models, LenetCanBeSmooth) {
  const auto count = [](const Graph& graph, auto wanted) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), wanted);
  };
  const auto is_tanh = [](const Node& n) {
    return as<Activation>(n) && as<Activation>(n)->kind == ActivationKind::tanh;
  };
  const auto is_max = [](const Node& n) { return as<Pool>(n) && as<Pool>(n)->mode == Pool::Mode::max; };
  const auto is_average = [](const Node& n) { return as<Pool>(n) && as<Pool>(n)->mode == Pool::Mode::average; };
  const Graph standard = build_graph({.model = "lenet"}),
              smooth = build_graph({.model = "lenet", .options = {{"pooling", "average"}}});
  EXPECT_EQ(count(standard, is_max), 2);
  EXPECT_EQ(count(smooth, is_max), 0);
  EXPECT_EQ(count(smooth, is_average), 2);
  EXPECT_EQ(count(smooth, is_tanh), 3);
  EXPECT_EQ(count(build_graph({.model = "lenet", .activation = "relu"}), is_tanh), 0);
}

TEST(Models, MlpTakesAnyHiddenLayers) {
  const auto deep =
      parameters_of(build_graph({.model = "mlp", .classes = 10, .image_size = 4, .options = {{"hidden", "9,5"}}}));
  EXPECT_EQ(deep.at("fc1.weight").shape, (std::vector<Index>{9, 48}));
  EXPECT_EQ(deep.at("fc2.weight").shape, (std::vector<Index>{5, 9}));
  EXPECT_EQ(deep.at("fc3.weight").shape, (std::vector<Index>{10, 5}));
  const auto linear =
      parameters_of(build_graph({.model = "mlp", .classes = 10, .image_size = 4, .options = {{"hidden", ""}}}));
  EXPECT_EQ(linear.at("fc1.weight").shape, (std::vector<Index>{10, 48}));
  EXPECT_EQ(linear.size(), 2U);
}

TEST(Models, UnknownNamesSuggestTheNearest) {
  expect_usage_error([] { build_graph({.model = "resnet-50"}); }, {"'resnet-50'", "did you mean 'resnet50'"});
  expect_usage_error([] { build_graph({.model = "lenett"}); }, {"did you mean 'lenet'"});
  expect_usage_error([] { build_graph({.model = "swin_t"}); }, {"'swin_t'", "'convoy models' lists the networks"});
  for (const char* impossible : {"resnet", "resnet19", "resnet2", "resnet20x", "resnet18_cifar", "resnet50_bottleneck",
                                 "resnet-20", "resnet99999999999"})
    expect_usage_error([&] { build_graph({.model = impossible}); }, {"unknown model", impossible});
  expect_usage_error([] { build_graph({.model = "regnet_y_4gf"}); },
                     {"'regnet_y_4gf'; networks of this family are regnet_y_400mf"});
}

TEST(Models, AlexnetsVariantsDifferInNormsGroupsAndActivations) {
  const auto count = [](const Graph& graph, const auto& wanted) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), wanted);
  };
  const auto is_norm = [](const Node& node) { return as<LocalResponseNorm>(node) != nullptr; };
  const auto is_grouped = [](const Node& node) { return as<Convolution>(node) && as<Convolution>(node)->groups == 2; };
  const auto is_tanh = [](const Node& node) {
    return as<Activation>(node) && as<Activation>(node)->kind == ActivationKind::tanh;
  };
  const auto drops = [](const Node& node) { return as<Dropout>(node) && as<Dropout>(node)->rate == 0.25F; };
  const Graph first = build_graph({.model = "alexnet", .options = {{"dropout", "0.25"}}}),
              ray = build_graph({.model = "alexnet", .options = {{"variant", "ray"}, {"dropout", "0.25"}}}),
              owt = build_graph({.model = "alexnet", .options = {{"variant", "owt"}, {"dropout", "0.25"}}});
  EXPECT_EQ(count(first, is_norm), 2);
  EXPECT_EQ(count(ray, is_norm), 3);
  EXPECT_EQ(count(owt, is_norm), 0);
  EXPECT_EQ(count(first, is_grouped), 3);
  EXPECT_EQ(count(ray, is_grouped) + count(owt, is_grouped), 0);
  EXPECT_EQ(count(first, is_tanh) + count(owt, is_tanh), 0);
  EXPECT_EQ(count(ray, is_tanh), 2);
  for (const Graph* graph : {&first, &ray, &owt}) EXPECT_EQ(count(*graph, drops), 2) << graph->model;
  EXPECT_EQ(owt.nodes[1].parameters[0].name, "features.0.weight");
  EXPECT_EQ(owt.nodes[owt.nodes.size() - 2].parameters[1].name, "classifier.6.bias");
}

TEST(Models, VariantsThatAModelLacksAreErrors) {
  expect_usage_error(
      [] {
        build_graph({.model = "alexnet", .options = {{"variant", "2014"}}});
      },
      {"alexnet", "'2014'", "owt"});
  expect_usage_error(
      [] {
        build_graph({.model = "alexnet", .options = {{"resnet-version", "v2"}}});
      },
      {"alexnet", "version"});
  expect_usage_error([] { build_graph({.model = "lenet", .options = {{"variant", "ray"}}}); }, {"lenet", "'ray'"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"dropout", "0.5"}}});
      },
      {"resnet50", "dropout"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"width-mult", "0.5"}}});
      },
      {"resnet50 has no width multiplier (got 0.5)"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"resnet-version", "v3"}}});
      },
      {"resnet50", "'v3'", "v1.5"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet20", .options = {{"stem", "imagenet"}}});
      },
      {"resnet20", "'imagenet'"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"stem", "big"}}});
      },
      {"'big'", "imagenet or small"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet50", .options = {{"pooling", "max"}}});
      },
      {"resnet50", "pooling"});
  expect_usage_error(
      [] {
        build_graph({.model = "resnet20", .options = {{"pooling", "max"}}});
      },
      {"resnet20", "pooling"});
  expect_usage_error(
      [] {
        build_graph({.model = "lenet", .options = {{"resnet-version", "v2"}}});
      },
      {"lenet", "version"});
  expect_usage_error(
      [] {
        build_graph({.model = "mlp", .options = {{"zero-init-residual", "true"}}});
      },
      {"mlp", "residual"});
  expect_usage_error(
      [] {
        build_graph({.model = "lenet", .options = {{"pooling", "median"}}});
      },
      {"'median'", "max or average"});
  expect_usage_error([] { build_graph({.activation = "softplus"}); }, {"'softplus'", "leaky_relu"});
  expect_usage_error([] { build_graph({.initialiser = "ones"}); }, {"'ones'", "xavier"});
  expect_usage_error([] { build_graph({.model = "mlp", .options = {{"hidden", "4,0"}}}); }, {"hidden layer 2"});
  expect_usage_error([] { build_graph({.classes = 0}); }, {"0 classes"});
  expect_usage_error([] { build_graph({.label_smoothing = 1}); }, {"label smoothing 1"});
}

TEST(Models, OptionsOfOneNameAreTheSameInEveryFamily) {
  std::map<std::string, ModelOption> first;
  for (const Family& family : model_families())
    for (const ModelOption& option : family.options) {
      const ModelOption& other = first.emplace(option.name, option).first->second;
      EXPECT_EQ(option.form, other.form) << option.name;
      EXPECT_EQ(option.words, other.words) << option.name;
      EXPECT_EQ(option.otherwise, other.otherwise) << option.name;
    }
  EXPECT_EQ(family_options().size(), first.size());
}

TEST(Models, UsualInputIsThatOfThePaper) {
  const auto usual = [](const GraphSpec& spec) {
    const GraphSpec filled = with_usual_input(spec, 0, 0, 0);
    return std::vector<Index>{filled.classes, filled.channels, filled.image_size};
  };
  const std::vector<Index> imagenet{1000, 3, 224}, cifar{10, 3, 32}, mnist{10, 1, 28};
  EXPECT_EQ(usual({.model = "resnet50"}), imagenet);
  EXPECT_EQ(usual({.model = "alexnet"}), imagenet);
  EXPECT_EQ(usual({.model = "resnet18", .options = {{"stem", "small"}}}), cifar);
  EXPECT_EQ(usual({.model = "resnet110_bottleneck"}), cifar);
  EXPECT_EQ(usual({.model = "lenet"}), mnist);
  EXPECT_EQ(usual({.model = "mlp"}), mnist);
  EXPECT_EQ(with_usual_input({.model = "lenet"}, 7, 0, 64).classes, 7);
  EXPECT_EQ(with_usual_input({.model = "lenet"}, 7, 0, 64).channels, 1);
  EXPECT_EQ(with_usual_input({.model = "lenet"}, 7, 0, 64).image_size, 64);
}

TEST(Models, GeluAndSiluReachTheNodes) {
  for (const auto& [name, kind] : {std::pair{"gelu", ActivationKind::gelu}, {"silu", ActivationKind::silu}}) {
    const Graph graph = build_graph({.model = "resnet20", .activation = name});
    EXPECT_TRUE(std::any_of(graph.nodes.begin(), graph.nodes.end(), [kind = kind](const Node& node) {
      return as<Activation>(node) && as<Activation>(node)->kind == kind;
    }));
  }
}

}  // namespace
}  // namespace convoy
