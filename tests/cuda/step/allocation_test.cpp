// SPDX-License-Identifier: Apache-2.0
// A step of the steady state allocates nothing: neither host memory (but for what the stand-in of the runtime takes
// inside of itself) nor the device's, and the host waits for nothing.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.hpp"
#include "cuda/step/training.hpp"
#include "support/allocations.hpp"
#include "support/formula.hpp"
#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/reference_library.hpp"

namespace convoy::cuda {
namespace {

long own_allocations() { return count_allocations() - host_cuda::counts().own_allocations; }

/// Also of an optimiser with matrix products.
class Allocations : public testing::TestWithParam<Rule> {};
INSTANTIATE_TEST_SUITE_P(Rules, Allocations, testing::Values(Rule::sgd, Rule::muon));

TEST_P(Allocations, NoneInAStep) {
  const auto backend = make_cuda_backend(make_reference_library(90, Fusing::fp16));
  constexpr Index image = 8, batch = 2;
  const Plan plan = make_plan(build_graph(small_model("resnet11_bottleneck", "relu", "v1.5")),
                              {.replicas = 2, .bucket_floats = 10000});
  CompileSpec spec;
  spec.samples = batch;
  spec.height = spec.width = image;
  spec.precision = Precision::fp16;
  spec.input = formula_input(image, image, 3);
  const OptimiserSpec optimiser{.rule = GetParam()};
  const auto program = backend->compile(plan, spec);
  const auto updater = backend->compile(plan, optimiser);
  float* const gradients = backend->allocate(plan.table.block());
  program->bind(backend->allocate(program->arena_floats()), gradients);
  updater->bind(backend->allocate(16 + updater->arena_floats()));
  const ParameterSet set{backend->allocate(backend->layout(plan, optimiser).count()),
                         backend->layout(plan, optimiser).count()};
  const ParameterSet average{backend->allocate(set.count), set.count};
  for (const ParameterSet& one : {set, average}) backend->refresh(one);
  const Index bytes = batch * image * image * 3;
  const auto* const rows = reinterpret_cast<const std::uint8_t*>(backend->allocate_host((bytes + 3) / 4));
  const std::vector<SampleSpec> samples = formula_samples("labels", batch, 10, false);
  EXPECT_GT(program->stages().size(), 2U);
  const auto step = [&](Index number) {
    backend->set_step({.learning_rate = 0.01F, .ema_decay = 0.9F, .step = number});
    program->feed({.samples = samples, .images = rows, .valid_count = batch, .scale = 0.5F, .norm_scale = 0.5F});
    for (std::size_t stage = 0; stage < program->stages().size(); ++stage) program->launch(stage, set);
    updater->launch(set, gradients);
    backend->blend(average, set);
    backend->refresh(average);
    const Event done = backend->record();
    while (!backend->done(done)) {
    }
  };
  for (Index i = 0; i < 4; ++i) step(i);
  const long before = own_allocations(), device = host_cuda::counts().allocations;
  for (Index i = 4; i < 7; ++i) step(i);
  EXPECT_EQ(own_allocations() - before, 0);
  EXPECT_EQ(host_cuda::counts().allocations - device, 0);
}

}  // namespace
}  // namespace convoy::cuda
