// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/pass.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "backend/cpu/step_builder.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// The nodes that a pass computes, for texts: those of statistics and gradients' sums aside. A conversion of a layout
/// is no node.
std::string names_of(const ProgramParts& parts, const PassPlan& plan) {
  std::string names;
  for (const Instruction& i : plan.instructions) {
    if (i.kind == InstructionKind::statistics || i.kind == InstructionKind::accumulate) continue;
    const Value& value = parts.lowering.value(i.value);
    for (const NodeId node : value.kind == ValueKind::loss ? std::vector{value.node} : value.nodes) {
      const std::string& name = parts.plan.graph.nodes[static_cast<std::size_t>(node)].name;
      if (names.find(name) == std::string::npos) names += (names.empty() ? "" : " + ") + name;
    }
  }
  return names.empty() ? "conversion" : names;
}

}  // namespace

Pass::Pass(const ProgramParts& parts, const PassPlan& plan, const PassChoice& choice)
    : choice_(choice), images_(parts.spec.samples), nodes_(names_of(parts, plan)) {
  if (plan.whole) choice_.inner = true;
  if (!choice_.inner) {
    require(choice_.tile > 0 && images_ % choice_.tile == 0, "a tile must divide the batch");
    threads_ = static_cast<int>(std::min<Index>(parts.threads, images_ / choice_.tile));
  }
  StepBuilder builder(parts, plan, choice_, threads_);
  builder.build();
  steps_ = builder.take_steps();
  thread_bytes_ = builder.thread_bytes();
  turn_bytes_ = builder.turn_bytes();
  shared_bytes_ = builder.shared_bytes();
}

void Pass::run(Memory& memory) const {
  memory.thread_scratch = memory.scratch + shared_bytes_;
  memory.turn_scratch = memory.thread_scratch + thread_bytes_;
  memory.thread_bytes = thread_bytes_ + turn_bytes_;
  const bool good = choice_.inner ? run_whole(memory) : run_tiles(memory);
  if (!good) fail(Exit::device, "oneDNN failed to run {}; report it with the output of `convoy inspect build`", nodes_);
}

bool Pass::run_whole(const Memory& memory) const {
  const Tile whole{.thread = 0, .first = 0, .count = images_};
  for (const auto& step : steps_) {
    step->open(memory);
    if (!step->run(memory, whole)) return false;
    step->close(memory, 1);
  }
  return true;
}

bool Pass::run_tiles(const Memory& memory) const {
  for (const auto& step : steps_) step->open(memory);
  std::atomic<bool> good{true};
  int working = 1;
  const Index tiles = images_ / choice_.tile;
#pragma omp parallel num_threads(threads_)
  {
    const int t = omp_get_thread_num(), team = omp_get_num_threads();
    if (t == 0) working = team;  // OpenMP may give fewer than asked for
    const Index begin = tiles * t / team, end = tiles * (t + 1) / team;
    for (Index i = begin; i < end && good; ++i) {
      const Tile tile{.thread = t, .first = i * choice_.tile, .count = choice_.tile, .opening = i == begin};
      for (const auto& step : steps_)
        if (!step->run(memory, tile)) good = false;
    }
  }
  if (!good) return false;
  for (const auto& step : steps_) step->close(memory, working);
  return true;
}

std::string Pass::kernels() const {
  std::string kernels;
  for (const auto& step : steps_) {
    const std::string text = step->describe();
    if (!text.empty()) kernels += (kernels.empty() ? "" : ", ") + text;
  }
  return fmt::format("{} | {}", choice_.inner ? "whole batch" : fmt::format("tiles of {}", choice_.tile), kernels);
}

}  // namespace convoy::cpu
