// SPDX-License-Identifier: Apache-2.0
// Blocks that run again on the CPU: the same bits as without.
#include "cuda/step/recompute_bits.hpp"

#include "backend/factory.hpp"

namespace convoy::cuda {
namespace {

TEST(RecomputedBits, SomeBlocks) {
  const auto make = [] { return make_cpu_backend(1); };
  TrainingSpec spec{.model = small_model("resnet20"), .batch = 3};
  expect_same_bits_with_some_blocks(make, spec, "basic");
  spec.plan.frozen = {"conv1", "bn1", "layer1"};
  expect_same_bits_with_some_blocks(make, spec, "basic, the first stage frozen");
}

/// Kernels that were measured while blocks run again. GoogLeNet's pools lie within blocks: what backward passes read
/// while they are measured must be places in windows, not what took their memory in the gap.
TEST(RecomputedBits, KernelsThatWereMeasured) {
  TrainingSpec spec{.model = small_model("googlenet"), .batch = 2, .image = 32, .tuning = Tuning::measured, .steps = 1};
  spec.model.activation.clear();
  spec.model.options.clear();
  spec.recompute = Recompute::all;
  const TrainingResult again = train(*make_cpu_backend(1), spec);
  EXPECT_GT(again.recomputation.blocks, 0);
  spec.recompute = Recompute::off;
  spec.tuning = Tuning::rule;
  spec.choices = again.choices;
  expect_equal_bits(train(*make_cpu_backend(1), spec), again, "googlenet");
}

}  // namespace
}  // namespace convoy::cuda
