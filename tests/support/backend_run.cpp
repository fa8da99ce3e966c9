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

}  // namespace

Counters take_counters(Backend& backend) {
  wait(backend, backend.counters_ready());
  return backend.take_counters();
}

std::vector<float> download(Backend& backend, const float* from, Index n) {
  std::vector<float> host(static_cast<std::size_t>(n));
  wait(backend, backend.download(host.data(), from, n, backend.record()));
  return host;
}

FencedBlock::FencedBlock(Backend& backend, Index floats, const char* name)
    : backend_(backend),
      floats_(floats),
      name_(name),
      data_(backend.allocate(floats + 2 * guard_floats) + guard_floats) {
  backend.fill(data_ - guard_floats, guard_floats, guard);
  backend.fill(data_, floats, poison);
  backend.fill(data_ + floats, guard_floats, guard);
}

void FencedBlock::expect_guards() const {
  for (const float* from : {data_ - guard_floats, data_ + floats_}) {
    for (const float value : download(backend_, from, guard_floats))
      ASSERT_EQ(value, guard) << "written past " << name_;
  }
}

ProgramBench::ProgramBench(Backend& backend, const Plan& plan, const CompileSpec& spec, const reference::Values& values,
                           const reference::Values* statistics)
    : backend_(backend),
      spec_(spec),
      classes_(plan.graph.classes),
      program_(backend.compile(plan, spec)),
      block_(static_cast<std::size_t>(backend.layout(plan, {}).count()), 0.0F),
      set_memory_(backend, backend.layout(plan, {}).count(), "the parameter set"),
      arena_(backend, program_->arena_floats(), "the arena"),
      gradients_(backend, spec.mode == Mode::train ? plan.table.block() : 0, "the gradient block"),
      set_{set_memory_.data(), set_memory_.count()} {
  const SetLayout layout = backend.layout(plan, {});
  std::copy(values.begin(), values.end(), block_.begin() + layout.values.begin);
  if (statistics != nullptr)
    std::copy(statistics->begin(), statistics->end(), block_.begin() + layout.statistics.begin);
  block_[static_cast<std::size_t>(layout.state.begin)] =
      spec.precision == Precision::fp16 ? 1024.0F : 1.0F;  // loss scale
  wait(backend, backend.upload(set_memory_.data(), block_.data(), layout.count()));
  backend.refresh(set_);
  program_->bind(arena_.data(), spec.mode == Mode::train ? gradients_.data() : nullptr);
}

void ProgramBench::feed(Batch batch, std::span<const std::uint8_t> images, std::span<const SampleSpec> samples) {
  std::vector<SampleSpec> own(samples.begin(), samples.end());
  batch.samples = samples;
  if (!images.empty()) {
    // A program takes as many rows as samples.
    const InputSpec& input = spec_.input;
    const auto bytes = static_cast<std::size_t>(input.height * input.width * input.channels);
    std::vector<std::uint8_t>& rows = rows_.emplace_back();
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto row = images.subspan(static_cast<std::size_t>(own[i].sample) * bytes, bytes);
      rows.insert(rows.end(), row.begin(), row.end());
      own[i].sample = static_cast<Index>(i);
    }
    batch.samples = own;
    batch.images = rows.data();
  }
  if (batch.valid_count == 0) batch.valid_count = spec_.samples;
  if (batch.norm_scale == 0) batch.norm_scale = 1.0F / static_cast<float>(spec_.samples);
  program_->feed(batch);
}

void ProgramBench::launch_all() {
  for (std::size_t stage = 0; stage < program_->stages().size(); ++stage) launch(stage);
}

void ProgramBench::expect_intact() const {
  for (const FencedBlock* memory : {&set_memory_, &arena_, &gradients_}) memory->expect_guards();
  const std::vector<float> after = download(backend_, set_memory_.data(), set_memory_.count());
  EXPECT_EQ(std::memcmp(after.data(), block_.data(), block_.size() * sizeof(float)), 0) << "a program wrote to its set";
}

BackendResult run_on(Backend& backend, const Plan& plan, const BackendInput& input) {
  ProgramBench bench(backend, plan, input.spec, *input.values);
  backend.take_counters();
  backend.set_step(input.step);
  Batch batch;
  batch.scale = input.scale;
  bench.feed(batch, input.images, input.samples);
  bench.launch_all();
  const Counters counters = take_counters(backend);
  bench.expect_intact();
  return {bench.logits(), bench.loss(), bench.gradients(), counters, bench.program().describe()};
}

}  // namespace convoy
