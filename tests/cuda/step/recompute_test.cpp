// SPDX-License-Identifier: Apache-2.0
// Blocks that run again, on the host: the same bits as without, with every way of fusing and rounding.
#include <gtest/gtest.h>

#include <map>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/cuda/lowering/execution_plan.hpp"
#include "cuda/step/recompute_bits.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

void expect_same_bits(const char* name, TrainingSpec spec, int sm, Fusing fusing) {
  const TrainingResult plain = train(*make_cuda_backend(make_reference_library(sm, fusing)), spec);
  spec.recompute = Recompute::all;
  const TrainingResult again = train(*make_cuda_backend(make_reference_library(sm, fusing)), spec);
  EXPECT_NE(again.description.find("run forward twice"), std::string::npos) << name << again.description;
  EXPECT_NE(again.description.find(" again "), std::string::npos) << name << again.description;
  expect_equal_bits(plain, again, name);
}

TEST(Recompute, BlocksOfEveryFormMakeTheSameBits) {
  const TrainingSpec bottleneck{.model = small_model("resnet20_bottleneck", "relu", "v1.5"), .batch = 3};
  const TrainingSpec basic{.model = small_model("resnet20"), .batch = 3};
  const TrainingSpec pre_activation{.model = small_model("resnet8", "relu", "v2"), .batch = 3};
  for (const int sm : {80, 90}) {
    expect_same_bits("bottleneck", bottleneck, sm, Fusing::everything);
    expect_same_bits("basic", basic, sm, Fusing::everything);
  }
  expect_same_bits("pre-activation", pre_activation, 90, Fusing::everything);
  TrainingSpec synchronised = basic;
  synchronised.plan.sync_bn = true;
  expect_same_bits("basic, synchronised statistics", synchronised, 90, Fusing::everything);
  expect_same_bits("basic, plain forms", basic, 90, Fusing::fp16);
  TrainingSpec half = bottleneck;
  half.precision = Precision::fp16;
  half.optimiser.loss_scale.start = 1024;
  expect_same_bits("bottleneck in fp16", half, 90, Fusing::fp16);
  TrainingSpec replayed = basic;
  replayed.launching = Launching::replayed;
  expect_same_bits("basic, replayed", replayed, 90, Fusing::fp16);
}

TEST(Recompute, OtherOperationsToo) {
  for (const char* const model : {"densenet121", "googlenet", "mobilenet_v3_small"}) {
    TrainingSpec spec{.model = small_model(model), .batch = 2, .image = 32, .steps = 1};
    spec.model.activation.clear();
    spec.model.options.clear();
    expect_same_bits(model, spec, 90, Fusing::fp16);
  }
}

TEST(Recompute, SomeBlocksMakeTheSameBits) {
  const auto make = [] { return make_cuda_backend(make_reference_library(90, Fusing::everything)); };
  TrainingSpec spec{.model = small_model("resnet20"), .batch = 3, .steps = 1};
  expect_same_bits_with_some_blocks(make, spec, "basic");
  spec.plan.frozen = {"conv1", "bn1", "layer1"};
  expect_same_bits_with_some_blocks(make, spec, "basic, the first stage frozen");
}

/// Tuning compares data gradients by these.
TEST(Recompute, SecondRunsAreNoDataGradients) {
  const Plan plan = make_plan(build_graph(small_model("resnet20")), {});
  CompileSpec compile{.samples = 2, .height = 16, .width = 16};
  compile.input.height = compile.input.width = 16;
  compile.input.channels = 3;
  const CopyLayout copies = make_copy_layout(plan, compile.precision);
  const auto library = make_reference_library(90, Fusing::everything);
  const auto data_gradients = [&](Recompute recompute) {
    compile.recompute = recompute;
    std::map<int, int> steps;  // by the value that they serve
    int again = 0;
    for (const Step& step : make_execution_plan({plan, compile, copies, *library}).steps) {
      if (step.makes_data_gradient()) ++steps[step.serves];
      if (step.again && step.serves >= 0) ++again;
    }
    EXPECT_EQ(again > 0, recompute == Recompute::all);
    return steps;
  };
  const std::map<int, int> plain = data_gradients(Recompute::off);
  EXPECT_GT(plain.size(), 10U);
  EXPECT_EQ(plain, data_gradients(Recompute::all));
}

}  // namespace
}  // namespace convoy::cuda
