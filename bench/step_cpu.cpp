// SPDX-License-Identifier: Apache-2.0
// Times training steps of the CPU backend alone, on made-up images: `bench_step resnet20 fp32 128 [STEPS] [measured]
// [one-thread] [describe]`. The median and the best step; describe also prints every phase with its kernels and
// milliseconds.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "backend/factory.hpp"
#include "core/errors.hpp"
#include "network/models.hpp"

namespace {

using namespace convoy;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of all threads. On a busy machine, with one thread, the steadier measure.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

GraphSpec graph_of(const std::string& name) {
  GraphSpec spec;
  spec.model = name;
  spec.classes = 10;
  spec.image_size = 32;
  if (name == "resnet18-small") {
    spec.model = "resnet18";
    spec.stem = "small";
  } else if (name == "resnet50") {
    spec.classes = 1000;
    spec.image_size = 224;
  }
  return spec;
}

void run(const std::vector<std::string>& words) {
  const GraphSpec graph = graph_of(words.at(0));
  const Index samples = std::stol(words.at(2)), pixels = graph.image_size * graph.image_size;
  const int steps = words.size() > 3 ? std::stoi(words[3]) : 10;
  const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };

  const auto backend = make_cpu_backend(has("one-thread") ? 1 : 0);
  const Plan plan = make_plan(build_graph(graph), PlanSpec{.weight_decay = 5e-4F});
  CompileSpec spec{.samples = samples, .height = graph.image_size, .width = graph.image_size};
  spec.precision = words.at(1) == "bf16" ? Precision::bf16 : Precision::fp32;
  spec.tuning = has("measured") ? Tuning::measured : Tuning::rule;
  spec.input = {.height = graph.image_size, .width = graph.image_size, .channels = 3};
  spec.input.mean = {127, 127, 127, 127};
  spec.input.std = {60, 60, 60, 60};
  const double start = now_seconds();
  const auto program = backend->compile(plan, spec);
  const double compiled = now_seconds();
  const auto updater = backend->compile(plan, OptimiserSpec{.rule = Rule::nesterov});
  const SetLayout layout = backend->layout(plan, OptimiserSpec{.rule = Rule::nesterov});
  const ParameterSet set{backend->allocate(layout.count()), layout.count()};
  initialise_parameters(plan.table, 1, set.block);
  initialise_statistics(plan.table, set.block + layout.statistics.begin);
  float* const gradients = backend->allocate(plan.table.block());
  program->bind(backend->allocate(program->arena_floats()), gradients);
  updater->bind(backend->allocate(updater->arena_floats()));
  backend->set_step({.rate = 0.01F, .momentum = 0.9F});

  std::vector<std::uint8_t> images(static_cast<std::size_t>(samples * pixels * 3));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>((i * 2654435761U) >> 13);
  std::vector<SampleSpec> samples_of(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < samples_of.size(); ++i) {
    samples_of[i].sample = static_cast<Index>(i);
    samples_of[i].a = samples_of[i].b = static_cast<std::int32_t>(i % static_cast<std::size_t>(graph.classes));
  }
  const float share = 1.0F / static_cast<float>(samples);
  const Batch batch{
      .samples = samples_of, .images = images.data(), .valid_count = samples, .scale = share, .norm_scale = share};
  std::vector<double> times, cpu_times;
  for (int i = 0; i <= steps; ++i) {
    const double begin = now_seconds(), cpu_begin = cpu_seconds();
    program->feed(batch);
    for (std::size_t s = 0; s < program->stages().size(); ++s) program->launch(s, set);
    updater->launch(set, gradients);
    times.push_back(now_seconds() - begin);
    if (i > 0) cpu_times.push_back(cpu_seconds() - cpu_begin);
  }
  fmt::print("first step {:.1f} ms, compile {:.3f} s, arena {:.0f} MB, {}\n", times[0] * 1e3, compiled - start,
             static_cast<double>(program->arena_floats()) * 4e-6, backend->describe());
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  std::sort(cpu_times.begin(), cpu_times.end());
  const double median = times[times.size() / 2];
  fmt::print(
      "{} {} batch {}: median {:.1f} images/s ({:.1f} ms), best {:.1f} ({:.1f} ms), CPU time {:.1f} ms (best {:.1f}), "
      "loss {:.4f}\n",
      words[0], words[1], samples, static_cast<double>(samples) / median, median * 1e3,
      static_cast<double>(samples) / times[0], times[0] * 1e3, cpu_times[cpu_times.size() / 2] * 1e3,
      cpu_times[0] * 1e3, backend->take_counters().loss / static_cast<double>(samples * (steps + 1)));
  if (has("describe")) fmt::print("{}\nchoices: {}\n", program->describe(), program->choices());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_step MODEL fp32|bf16 BATCH [STEPS] [measured] [one-thread] [describe]\n");
    return 2;
  }
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
