// SPDX-License-Identifier: Apache-2.0
#include "support/backend_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

namespace convoy {
namespace {

constexpr float poison = std::numeric_limits<float>::quiet_NaN();
constexpr float guard = -12345.678F;
constexpr Index guard_floats = 64;

void wait(Backend& backend, Event event) {
  while (!backend.done(event)) std::this_thread::yield();
}

std::vector<float> download(Backend& backend, const float* from, Index n) {
  std::vector<float> host(static_cast<std::size_t>(n));
  wait(backend, backend.download(host.data(), from, n, backend.record()));
  return host;
}

/// A block of device memory between two guards.
class Fenced {
 public:
  Fenced(Backend& backend, Index floats, const char* name)
      : backend_(backend), floats_(floats), name_(name), block_(backend.allocate(floats + 2 * guard_floats)) {
    backend.fill(block_, guard_floats, guard);
    backend.fill(data(), floats, poison);
    backend.fill(data() + floats, guard_floats, guard);
  }
  float* data() const { return block_ + guard_floats; }
  void expect_guards() const {
    for (const float* from : {block_, data() + floats_}) {
      for (const float value : download(backend_, from, guard_floats))
        ASSERT_EQ(value, guard) << "written past " << name_;
    }
  }

 private:
  Backend& backend_;
  Index floats_;
  const char* name_;
  float* block_;
};

}  // namespace

BackendResult run_on(Backend& backend, const Plan& plan, const BackendInput& input) {
  const bool training = input.spec.mode == Mode::train;
  const auto program = backend.compile(plan, input.spec);
  const SetLayout layout = backend.layout(plan, OptimiserSpec{});
  const Fenced set_memory(backend, layout.count(), "the parameter set");
  const Fenced arena(backend, program->arena_floats(), "the arena");
  const Fenced gradients(backend, plan.table.block(), "the gradient block");

  std::vector<float> block(static_cast<std::size_t>(layout.count()), 0.0F);
  std::copy(input.values->begin(), input.values->end(), block.begin() + layout.values.begin);
  if (input.statistics != nullptr) {
    std::copy(input.statistics->begin(), input.statistics->end(), block.begin() + layout.statistics.begin);
  }
  wait(backend, backend.upload(set_memory.data(), block.data(), layout.count()));
  const ParameterSet set{set_memory.data(), layout.count()};
  backend.refresh(set);
  // Flags belong to all replicas: the step clears them, a program sets its own.
  backend.fill(gradients.data() + plan.table.flags.begin, plan.table.flags.count, 0);
  program->bind(arena.data(), training ? gradients.data() : nullptr);

  Batch batch;
  batch.samples = input.samples;
  batch.images = input.images.data();
  batch.valid_count = input.valid_count < 0 ? input.spec.samples : input.valid_count;
  batch.scale = input.scale;
  batch.norm_scale = 1.0F / static_cast<float>(input.spec.samples);
  backend.take_counters();
  program->feed(batch);
  for (std::size_t stage = 0; stage < program->stages().size(); ++stage) program->launch(stage, set);
  wait(backend, backend.counters_ready());

  BackendResult result;
  result.counters = backend.take_counters();
  result.logits = download(backend, program->logits(), input.spec.samples * plan.graph.classes);
  result.loss = download(backend, program->loss_per_sample(), input.spec.samples);
  if (training) result.gradients = download(backend, gradients.data(), plan.table.block());
  result.description = program->describe();
  for (const Fenced* memory : {&set_memory, &arena, &gradients}) memory->expect_guards();
  const std::vector<float> after = download(backend, set_memory.data(), layout.count());
  EXPECT_EQ(std::memcmp(after.data(), block.data(), block.size() * sizeof(float)), 0) << "a program wrote to its set";
  return result;
}

}  // namespace convoy
