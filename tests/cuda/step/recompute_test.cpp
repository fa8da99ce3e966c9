// SPDX-License-Identifier: Apache-2.0
// Blocks that run again, on the host: the same bits as without, with every way of fusing and rounding.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.hpp"
#include "cuda/step/training.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

void expect_same_bits(const char* name, TrainingSpec spec, int sm, Fusing fusing) {
  const TrainingResult plain = train(*make_cuda_backend(make_reference_library(sm, fusing)), spec);
  spec.recompute = Recompute::all;
  const TrainingResult again = train(*make_cuda_backend(make_reference_library(sm, fusing)), spec);
  EXPECT_NE(again.description.find("run forward twice"), std::string::npos) << name << again.description;
  EXPECT_NE(again.description.find(" again "), std::string::npos) << name << again.description;
  EXPECT_EQ(plain.first_gradients, again.first_gradients) << name;
  EXPECT_EQ(plain.gradients, again.gradients) << name;
  EXPECT_EQ(plain.set, again.set) << name;  // running statistics are in it
  EXPECT_EQ(plain.logits, again.logits) << name;
  EXPECT_EQ(plain.choices, again.choices) << name;
  EXPECT_EQ(plain.counters.samples, again.counters.samples) << name;
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

}  // namespace
}  // namespace convoy::cuda
