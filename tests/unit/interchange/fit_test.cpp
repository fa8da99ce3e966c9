// SPDX-License-Identifier: Apache-2.0
#include "interchange/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "support/expect_error.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

Plan plan_of(const std::string& model, Index classes = 10, Index image_size = 32) {
  return make_plan(build_graph({.model = model, .classes = classes, .image_size = image_size}), {});
}

/// Every tensor of the state dict with values of its own.
std::vector<NamedTensor> state_of(const Plan& plan) {
  std::vector<float> values(static_cast<std::size_t>(plan.table.parameters.count)),
      statistics(static_cast<std::size_t>(plan.table.statistics.count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.5F;
  for (std::size_t i = 0; i < statistics.size(); ++i) statistics[i] = static_cast<float>(i) + 0.25F;
  return state_dict_values(plan, values, statistics, 7);
}

class FitTest : public testing::Test {
 protected:
  TensorFile file_of(const std::vector<NamedTensor>& tensors) const {
    write_safetensors(path_, tensors);
    return TensorFile(path_);
  }
  const TempFolder folder_;
  const std::string path_ = folder_ / "weights";
};

TEST_F(FitTest, AStateDictHasPyTorchsEntries) {
  const std::vector<NamedTensor> state = state_of(plan_of("resnet8"));
  const auto names = {"conv1.weight",     "bn1.weight",      "bn1.bias",
                      "bn1.running_mean", "bn1.running_var", "bn1.num_batches_tracked"};
  EXPECT_TRUE(std::equal(names.begin(), names.end(), state.begin(),
                         [](const char* name, const NamedTensor& tensor) { return tensor.name == name; }));
  EXPECT_EQ(state[0].extent, (std::vector<Index>{16, 3, 3, 3}));
  EXPECT_EQ(state[5].extent, std::vector<Index>{});
  EXPECT_EQ(state[5].whole_numbers, std::vector<std::int64_t>{7});
  EXPECT_EQ(state.back().name, "fc.bias");
}

/// Whether a state dict with these names in place of the network's fits.
void expect_timm(const std::string& model, const std::vector<std::pair<std::string, std::string>>& modules) {
  const NameMap names = timm_modules(plan_of(model).graph);
  for (const auto& [ours, theirs] : modules) {
    ASSERT_TRUE(names.contains(ours)) << model << ' ' << ours;
    EXPECT_EQ(names.at(ours), theirs) << model;
  }
  std::set<std::string> modules_with_tensors, renamed;
  for (const auto& [ours, theirs] : names) renamed.insert(theirs);
  EXPECT_EQ(renamed.size(), names.size()) << model << ": no two are one";
  for (const Node& node : plan_of(model).graph.nodes)
    if (!node.parameters.empty()) modules_with_tensors.insert(node.name);
  EXPECT_EQ(modules_with_tensors.size(), names.size()) << model << ": all are named";
}

/// As timm 1.0 names them.
TEST_F(FitTest, ModulesHaveTimmsNames) {
  expect_timm("regnet_y_400mf", {{"stem.0", "stem.conv"},
                                 {"trunk_output.block1.block1-0.proj.1", "s1.b1.downsample.bn"},
                                 {"trunk_output.block1.block1-0.f.a.0", "s1.b1.conv1.conv"},
                                 {"trunk_output.block4.block4-5.f.se.fc2", "s4.b6.se.fc2"},
                                 {"trunk_output.block4.block4-5.f.c.1", "s4.b6.conv3.bn"},
                                 {"fc", "head.fc"}});
  expect_timm("mnasnet0_5", {{"layers.0", "conv_stem"},
                             {"layers.3", "blocks.0.0.conv_dw"},
                             {"layers.7", "blocks.0.0.bn2"},
                             {"layers.12.3.layers.4", "blocks.5.3.bn2"},
                             {"layers.13.0.layers.6", "blocks.6.0.conv_pwl"},
                             {"layers.15", "bn2"},
                             {"classifier.1", "classifier"}});
  expect_timm("efficientnet_v2_s", {{"features.0.0", "conv_stem"},
                                    {"features.1.1.block.0.0", "blocks.0.1.conv"},
                                    {"features.2.0.block.0.0", "blocks.1.0.conv_exp"},
                                    {"features.2.0.block.1.1", "blocks.1.0.bn2"},
                                    {"features.6.14.block.2.fc1", "blocks.5.14.se.conv_reduce"},
                                    {"features.6.14.block.3.0", "blocks.5.14.conv_pwl"},
                                    {"features.7.0", "conv_head"},
                                    {"classifier.1", "classifier"}});
}

TEST_F(FitTest, OneWordBeforeAllNamesIsDropped) {
  const Plan plan = plan_of("resnet8");
  for (const std::string prefix : {"model.", "net.", "module.backbone."}) {
    std::vector<NamedTensor> state = state_of(plan);
    for (NamedTensor& tensor : state) tensor.name = prefix + tensor.name;
    EXPECT_TRUE(fit_state(plan, file_of(state)).fits()) << prefix;
    state.push_back({"criterion.weight", {10}, std::vector<float>(10)});
    const TensorFile other = file_of(state);
    const StateFit fit = fit_state(plan, other);
    EXPECT_FALSE(fit.fits_body()) << "a tensor beside the network: no prefix of all";
  }
  // All names of a VGG's body begin with a word of the network itself.
  const Plan vgg = plan_of("vgg11");
  std::vector<NamedTensor> body = state_of(vgg);
  std::erase_if(body, [](const NamedTensor& tensor) { return !tensor.name.starts_with("features."); });
  const TensorFile file = file_of(body);
  const StateFit fit = fit_state(vgg, file);
  EXPECT_TRUE(fit.unexpected.empty());
  EXPECT_EQ(fit.filled.size(), body.size());
  EXPECT_EQ(fit.missing.size(), 4U);  // two hidden layers
  EXPECT_EQ(fit.missing_head.size(), 2U);
}

TEST_F(FitTest, ABodyAloneAndAHeadOfOneClassFitButForTheHead) {
  const Plan plan = plan_of("resnet8");
  std::vector<NamedTensor> body = state_of(plan);
  std::erase_if(body, [](const NamedTensor& tensor) { return tensor.name.starts_with("fc."); });
  const TensorFile headless = file_of(body);
  const StateFit fit = fit_state(plan, headless);
  EXPECT_FALSE(fit.fits());
  EXPECT_TRUE(fit.fits_body());
  ASSERT_EQ(fit.missing_head.size(), 2U);
  EXPECT_EQ(fit.missing_head[0].name, "fc.weight");
  EXPECT_EQ(classes_of(fit, plan), 0);

  std::vector<NamedTensor> half = state_of(plan);
  half.pop_back();  // fc.bias
  EXPECT_FALSE(fit_state(plan, file_of(half)).fits_body()) << "a part of a head is none";

  const TensorFile one = file_of(state_of(plan_of("resnet8", 1)));
  const StateFit single = fit_state(plan, one);
  EXPECT_TRUE(single.fits());
  EXPECT_EQ(single.other_head.size(), 2U);
  EXPECT_EQ(classes_of(single, plan), 1);
}

TEST_F(FitTest, ValuesComeBackIntoASet) {
  const Plan plan = plan_of("resnet8");
  std::vector<NamedTensor> state = state_of(plan);
  const std::uint64_t digest = digest_of_state(state);
  std::reverse(state.begin(), state.end());
  for (NamedTensor& tensor : state) tensor.name = "module._orig_mod." + tensor.name;
  state.push_back({"n_averaged", {}, {}, {3}});
  const TensorFile file = file_of(state);
  const StateFit fit = fit_state(plan, file);
  ASSERT_TRUE(fit.fits());
  EXPECT_TRUE(fit.other_head.empty());
  EXPECT_EQ(fit.left_out.size(), plan.table.norms.size());
  EXPECT_EQ(classes_of(fit, plan), 10);
  std::vector<float> values(static_cast<std::size_t>(plan.table.parameters.count)),
      statistics(static_cast<std::size_t>(plan.table.statistics.count));
  EXPECT_EQ(fill_set(fit.filled, file, values, statistics), digest);
  for (const Parameter& row : plan.table.rows)
    for (Index i = row.range.begin; i < row.range.end(); ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i) + 0.5F) << row.name;
  for (const NormStatistics& norm : plan.table.norms)
    ASSERT_EQ(statistics[static_cast<std::size_t>(norm.variance.begin)],
              static_cast<float>(norm.variance.begin) + 0.25F);
}

TEST_F(FitTest, ACountOfAveragesAloneFitsNothing) {
  const TensorFile file = file_of({{"n_averaged", {}, {}, {3}}});
  EXPECT_FALSE(fit_state(plan_of("resnet8"), file).fits());
}

TEST_F(FitTest, AnotherNumberOfClassesIsAnotherHead) {
  const Plan plan = plan_of("resnet8");
  const TensorFile file = file_of(state_of(plan_of("resnet8", 7)));
  const StateFit fit = fit_state(plan, file);
  EXPECT_TRUE(fit.fits());
  ASSERT_EQ(fit.other_head.size(), 2U);
  EXPECT_EQ(fit.other_head[0].entry.name, "fc.weight");
  EXPECT_EQ(classes_of(fit, plan), 7);
  expect_error(Exit::data,
               {"2 tensors of another number of classes", "'fc.weight' is 7x64 in the file and 10x64 in the network"},
               [&] { fail_misfit(fit, plan, file); });
}

TEST_F(FitTest, DifferencesAreListed) {
  const Plan plan = plan_of("resnet8");
  std::vector<NamedTensor> state = state_of(plan);
  state[0].extent = {16, 3, 1, 9};
  state[1].name = "bn1.gamma";
  const TensorFile file = file_of(state);
  expect_error(
      Exit::data,
      {path_, "safetensors", "1 tensor missing: 'bn1.weight' 16", "1 tensor unknown to the network: 'bn1.gamma' 16",
       "1 tensor of another shape: 'conv1.weight' is 16x3x1x9 in the file and 16x3x3x3 in the network",
       "give the model and the classes that it was made with"},
      [&] { fail_misfit(fit_state(plan, file), plan, file); });
}

TEST_F(FitTest, AnotherNetworkThatFitsIsNamed) {
  const TensorFile file = file_of(state_of(plan_of("resnet18", 1000, 224)));
  const std::vector<GraphSpec> fitting = networks_that_fit(file);
  ASSERT_EQ(fitting.size(), 1U);
  EXPECT_EQ(fitting[0].model, "resnet18");
  EXPECT_EQ(fitting[0].classes, 1000);
  const Plan plan = plan_of("resnet34", 1000, 224);
  expect_error(Exit::data, {"doesn't fit resnet34", "80 tensors missing", " and 77 more); it fits --model resnet18"},
               [&] { fail_misfit(fit_state(plan, file), plan, file); });
}

TEST_F(FitTest, AuxiliaryClassifiersAreLeftOut) {
  const Plan plan = plan_of("googlenet", 5, 224);
  std::vector<NamedTensor> state = state_of(plan);
  const std::size_t norms = plan.table.norms.size();
  state.push_back({"aux1.fc2.bias", {5}, {1, 2, 3, 4, 5}});
  const TensorFile file = file_of(state);
  const StateFit fit = fit_state(plan, file);
  EXPECT_TRUE(fit.fits());
  EXPECT_EQ(fit.left_out.size(), norms + 1);
}

TEST_F(FitTest, AuxiliaryClassifiersOfANetworkThatHasThem) {
  const auto with_heads = [](Index classes) {
    return make_plan(build_graph({.model = "googlenet", .classes = classes, .options = {{"aux-heads", "true"}}}), {});
  };
  const Plan plan = with_heads(5);
  std::vector<NamedTensor> state = state_of(plan);
  EXPECT_TRUE(fit_state(plan, file_of(state)).fits());
  {
    const TensorFile file = file_of(state);
    const StateFit other = fit_state(with_heads(9), file);
    EXPECT_TRUE(other.fits());
    EXPECT_EQ(other.other_head.size(), 6U) << "weight and bias of three last layers";
  }
  std::erase_if(state, [](const NamedTensor& tensor) { return tensor.name.starts_with("aux"); });
  const TensorFile body = file_of(state);
  const StateFit fit = fit_state(plan, body);
  EXPECT_TRUE(fit.fits_body());
  EXPECT_FALSE(fit.fits());
  EXPECT_EQ(fit.missing_auxiliary.size(), 2U * 9U);
  expect_error(Exit::data, {"without its auxiliary classifiers", "18 tensors missing"},
               [&] { fail_misfit(fit, plan, body); });
  state.pop_back();
  const TensorFile short_one = file_of(state);
  EXPECT_FALSE(fit_state(plan, short_one).fits_body());
}

TEST_F(FitTest, ValuesThatAreNotFiniteAreRefused) {
  const Plan plan = plan_of("resnet8");
  std::vector<NamedTensor> state = state_of(plan);
  state[2].values[1] = NAN;
  const TensorFile file = file_of(state);
  const StateFit fit = fit_state(plan, file);
  std::vector<float> values(static_cast<std::size_t>(plan.table.parameters.count)),
      statistics(static_cast<std::size_t>(plan.table.statistics.count));
  expect_error(Exit::data, {"'bn1.bias'", "not finite"}, [&] { fill_set(fit.filled, file, values, statistics); });
}

}  // namespace
}  // namespace convoy
