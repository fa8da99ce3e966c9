// SPDX-License-Identifier: Apache-2.0
// Parameters against torchvision's documented counts, the MNIST example of Caffe (lenet) and
// counts by hand; MACs against the tables of the papers.
#include <gtest/gtest.h>

#include "network/graph.hpp"
#include "network/models.hpp"

namespace convoy {
namespace {

struct Known {
  GraphSpec spec;
  Index size;
  Index parameters;
  double macs;  ///< 0: not compared
};

class KnownCost : public testing::TestWithParam<Known> {};

TEST_P(KnownCost, ParametersAndMacs) {
  const Known& known = GetParam();
  const Cost cost = cost_of(build_graph(known.spec), known.size, known.size);
  EXPECT_EQ(cost.parameters, known.parameters);
  if (known.macs > 0) {
    EXPECT_NEAR(cost.macs / known.macs, 1, 0.003) << cost.macs;
  }
}

INSTANTIATE_TEST_SUITE_P(
    ImageNet, KnownCost,
    testing::Values(
        Known{{.model = "resnet18"}, 224, 11'689'512, 1.814e9}, Known{{.model = "resnet34"}, 224, 21'797'672, 3.664e9},
        Known{{.model = "resnet50"}, 224, 25'557'032, 4.089e9},
        Known{{.model = "resnet50", .options = {{"resnet-version", "v1"}}}, 224, 25'557'032, 3.86e9},
        Known{{.model = "resnet101"}, 224, 44'549'160, 7.801e9},
        Known{{.model = "resnet152"}, 224, 60'192'808, 11.514e9},
        Known{{.model = "resnet18", .classes = 10, .options = {{"stem", "small"}}}, 32, 11'173'962, 0.5556e9}));

// torchvision's documented counts; inception_v4 and inception_resnet_v2 timm's, inception_bn MXNet's parameters;
// mobilenet_v1 and wrn by their papers or by hand.
INSTANTIATE_TEST_SUITE_P(
    Torchvision, KnownCost,
    testing::Values(
        Known{{.model = "vgg11"}, 224, 132'863'336, 7.61e9}, Known{{.model = "vgg13"}, 224, 133'047'848, 11.31e9},
        Known{{.model = "vgg16"}, 224, 138'357'544, 15.47e9}, Known{{.model = "vgg19"}, 224, 143'667'240, 19.63e9},
        Known{{.model = "vgg11_bn"}, 224, 132'868'840, 7.61e9}, Known{{.model = "vgg13_bn"}, 224, 133'053'736, 11.31e9},
        Known{{.model = "vgg16_bn"}, 224, 138'365'992, 15.47e9},
        Known{{.model = "vgg19_bn"}, 224, 143'678'248, 19.63e9},
        Known{{.model = "resnext50_32x4d"}, 224, 25'028'904, 4.23e9},
        Known{{.model = "resnext101_32x8d"}, 224, 88'791'336, 16.41e9},
        Known{{.model = "resnext101_64x4d"}, 224, 83'455'272, 15.46e9},
        Known{{.model = "wide_resnet50_2"}, 224, 68'883'240, 11.4e9},
        Known{{.model = "wide_resnet101_2"}, 224, 126'886'696, 22.75e9},
        Known{{.model = "densenet121"}, 224, 7'978'856, 2.83e9},
        Known{{.model = "densenet161"}, 224, 28'681'000, 7.73e9},
        Known{{.model = "densenet169"}, 224, 14'149'480, 3.36e9},
        Known{{.model = "densenet201"}, 224, 20'013'928, 4.29e9},
        Known{{.model = "googlenet"}, 224, 6'624'904, 1.498e9},
        Known{{.model = "inception_v3"}, 299, 23'834'568, 5'713'216'096},
        Known{{.model = "googlenet", .options = {{"aux-heads", "true"}}}, 224, 13'004'888, 1.498e9},
        Known{{.model = "inception_v3", .image_size = 299, .options = {{"aux-heads", "true"}}},
              299,
              27'161'264,
              5'713'216'096},
        Known{{.model = "inception_v4"}, 299, 42'679'816, 12'253'974'624},
        Known{{.model = "inception_resnet_v2"}, 299, 55'843'464, 13'155'794'016},
        Known{{.model = "inception_bn"}, 224, 11'295'240, 1'987'204'096},
        Known{{.model = "regnet_y_400mf"}, 224, 4'344'144, 401'842'848},
        Known{{.model = "regnet_y_800mf"}, 224, 6'432'512, 833'856'256},
        Known{{.model = "regnet_y_1_6gf"}, 224, 11'202'430, 1'612'076'160},
        Known{{.model = "regnet_y_3_2gf"}, 224, 19'436'338, 3'176'482'752},
        Known{{.model = "regnet_y_8gf"}, 224, 39'381'472, 8'473'070'592},
        Known{{.model = "regnet_y_16gf"}, 224, 83'590'140, 15'911'510'272},
        Known{{.model = "regnet_y_32gf"}, 224, 145'046'770, 32'279'552'832},
        Known{{.model = "regnet_x_400mf"}, 224, 5'495'976, 413'812'608},
        Known{{.model = "regnet_x_800mf"}, 224, 7'259'656, 799'699'712},
        Known{{.model = "regnet_x_1_6gf"}, 224, 9'190'136, 1'602'849'792},
        Known{{.model = "regnet_x_3_2gf"}, 224, 15'296'552, 3'176'621'952},
        Known{{.model = "regnet_x_8gf"}, 224, 39'572'648, 7'995'132'416},
        Known{{.model = "regnet_x_16gf"}, 224, 54'278'536, 15'940'755'456},
        Known{{.model = "regnet_x_32gf"}, 224, 107'811'560, 31'735'929'792},
        Known{{.model = "squeezenet1_0"}, 224, 1'248'424, 818'924'576},
        Known{{.model = "squeezenet1_1"}, 224, 1'235'496, 349'151'936},
        Known{{.model = "mobilenet_v3_small"}, 224, 2'542'856, 56'510'400},
        Known{{.model = "mobilenet_v3_large"}, 224, 5'483'032, 216'589'760},
        Known{{.model = "mnasnet0_5"}, 224, 2'218'512, 104'455'968},
        Known{{.model = "mnasnet0_75"}, 224, 3'170'208, 215'493'104},
        Known{{.model = "mnasnet1_0"}, 224, 4'383'312, 314'415'872},
        Known{{.model = "mnasnet1_3"}, 224, 6'282'256, 526'362'432},
        Known{{.model = "efficientnet_b0"}, 224, 5'288'548, 385'814'752},
        Known{{.model = "efficientnet_b1"}, 240, 7'794'184, 686'802'832},
        Known{{.model = "efficientnet_b2"}, 288, 9'109'994, 1'087'529'456},
        Known{{.model = "efficientnet_b3"}, 300, 12'233'232, 1'827'141'392},
        Known{{.model = "efficientnet_b4"}, 380, 19'341'616, 4'393'771'024},
        Known{{.model = "efficientnet_b5"}, 456, 30'389'784, 10'266'384'752},
        Known{{.model = "efficientnet_b6"}, 528, 43'040'704, 19'067'593'536},
        Known{{.model = "efficientnet_b7"}, 600, 66'347'960, 37'745'884'192},
        Known{{.model = "efficientnet_v2_s"}, 384, 21'458'488, 8'365'617'152},
        Known{{.model = "efficientnet_v2_m"}, 480, 54'139'356, 24'582'460'384},
        Known{{.model = "efficientnet_v2_l"}, 480, 118'515'272, 56'079'699'008},
        Known{{.model = "seresnet50"}, 224, 28'088'024, 0}, Known{{.model = "mobilenet_v2"}, 224, 3'504'872, 0.301e9},
        Known{{.model = "mobilenet_v2", .options = {{"width-mult", "0.35"}}}, 224, 1'677'128, 0},
        Known{{.model = "mobilenet_v2", .options = {{"width-mult", "0.5"}}}, 224, 1'968'680, 0},
        Known{{.model = "mobilenet_v2", .options = {{"width-mult", "0.75"}}}, 224, 2'636'424, 0},
        Known{{.model = "mobilenet_v2", .options = {{"width-mult", "1.4"}}}, 224, 6'108'776, 0},
        Known{{.model = "mobilenet_v3_small", .options = {{"width-mult", "0.75"}}}, 224, 1'653'920, 0},
        Known{{.model = "mobilenet_v3_large", .options = {{"width-mult", "0.75"}}}, 224, 3'377'576, 0},
        Known{{.model = "mobilenet_v1"}, 224, 4'231'976, 0.569e9},
        Known{{.model = "mobilenet_v1", .options = {{"width-mult", "0.5"}}}, 224, 1'331'592, 149'497'088},
        Known{{.model = "wrn16_4", .classes = 10}, 32, 2'748'890, 0},
        Known{{.model = "wrn28_10", .classes = 10}, 32, 36'479'194, 5.24e9},
        Known{{.model = "airbench94", .classes = 10, .image_size = 32}, 32, 1'972'792, 118'147'360}));

INSTANTIATE_TEST_SUITE_P(
    Small, KnownCost,
    // CIFAR: option A has 269,722 (resnet20); projections add 16*32 + 32*64 weights and 2*(32 + 64) norm values. In
    // pre-activation order projections have no norm: 192 less.
    testing::Values(
        Known{{.model = "resnet20", .classes = 10}, 32, 272'474, 40.8e6},
        Known{{.model = "resnet20", .classes = 10, .options = {{"resnet-version", "v2"}}}, 32, 272'282, 40.8e6},
        Known{{.model = "resnet56", .classes = 10}, 32, 855'770, 0},
        Known{{.model = "resnet110", .classes = 10}, 32, 1'730'714, 0},
        Known{{.model = "resnet164", .classes = 10}, 32, 1'703'258, 0},
        Known{{.model = "resnet164", .classes = 10, .options = {{"resnet-version", "v1"}}}, 32, 1'704'154, 0},
        // Krizhevsky et al. 2012 in Caffe's form, one tower, torchvision.
        Known{{.model = "alexnet"}, 224, 60'965'224, 724'406'816},
        Known{{.model = "alexnet", .options = {{"variant", "ray"}}}, 224, 62'378'344, 0},
        Known{{.model = "alexnet", .options = {{"variant", "owt"}}}, 224, 61'100'840, 714.2e6},
        Known{{.model = "lenet", .classes = 10, .channels = 1, .image_size = 28},
              28,
              431'080,
              24. * 24 * 20 * 25 + 8. * 8 * 50 * 20 * 25 + 800. * 500 + 500. * 10},
        Known{{.model = "mlp", .classes = 10, .channels = 1, .image_size = 28, .options = {{"hidden", "128,64"}}},
              28,
              784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10,
              784. * 128 + 128. * 64 + 64. * 10}));

TEST(Cost, TrainingHasNoDataGradientOfTheFirstLayer) {
  const Cost resnet = cost_of(build_graph({.model = "resnet50"}), 224, 224);
  const double first = 112. * 112 * 64 * 3 * 49;
  EXPECT_DOUBLE_EQ(resnet.training_flops, 2 * (3 * resnet.macs - first));
  EXPECT_NEAR(resnet.training_flops, 24.3e9, 0.01e9);

  const Cost mlp =
      cost_of(build_graph({.model = "mlp", .classes = 10, .image_size = 8, .options = {{"hidden", "5"}}}), 8, 8);
  EXPECT_DOUBLE_EQ(mlp.macs, 192 * 5 + 5 * 10);
  EXPECT_DOUBLE_EQ(mlp.training_flops, 2 * (2 * 192 * 5 + 3 * 5 * 10));
}

TEST(Cost, GroupsDivideMacsAndParameters) {
  Graph graph;
  graph.classes = 8;
  graph.nodes.push_back({"input", Input{4}, {}, {}});
  graph.nodes.push_back(
      {"conv", Convolution{.in = 4, .out = 8, .groups = 2}, {0}, {{"conv.weight", Kind::weight, {8, 2, 3, 3}, {}}}});
  graph.nodes.push_back({"pool", GlobalAveragePool{}, {1}, {}});
  graph.nodes.push_back({"loss", Loss{}, {2}, {}});
  const Cost cost = cost_of(graph, 5, 6);
  EXPECT_DOUBLE_EQ(cost.macs, 5 * 6 * 8 * 2 * 9);
  EXPECT_EQ(cost.parameters, 8 * 2 * 9);
  EXPECT_DOUBLE_EQ(cost.training_flops, 2 * 2 * cost.macs);
}

TEST(NeedsGradient, StartsWithTheFirstParameter) {
  const Graph graph = build_graph({.model = "mlp", .classes = 10, .image_size = 8});
  const std::vector<bool> needed = needs_gradient(graph);
  ASSERT_EQ(graph.nodes[1].name, "flatten");
  EXPECT_FALSE(needed[0]);
  EXPECT_FALSE(needed[1]);
  for (std::size_t i = 2; i < needed.size(); ++i) EXPECT_TRUE(needed[i]) << graph.nodes[i].name;
}

}  // namespace
}  // namespace convoy
