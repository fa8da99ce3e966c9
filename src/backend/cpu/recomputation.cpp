// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/recomputation.hpp"

#include <map>
#include <utility>

#include "backend/cpu/pass_cost.hpp"

namespace convoy::cpu {
namespace {

using lowering::KeptTensor;
using lowering::RepeatedBlock;
using lowering::TouchingStep;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// An instruction's place.
struct Place {
  std::size_t pass = 0, instruction = 0;
};

std::vector<Place> places_of(const Schedule& schedule) {
  std::vector<Place> places;
  for (std::size_t k = 0; k < schedule.passes.size(); ++k)
    for (std::size_t i = 0; i < schedule.passes[k].instructions.size(); ++i) places.push_back({k, i});
  return places;
}

/// Work in FLOP; a byte moved counts as 16 FLOP.
double work_of(const ProgramParts& parts, const Instruction& instruction, const std::vector<Shape>& shapes) {
  PassPlan alone;
  alone.instructions = {instruction};
  const PassCost cost = cost_of(parts, alone, shapes);
  constexpr double flops_per_byte = 16;
  return cost.flops + flops_per_byte * cost.bytes;
}

}  // namespace

std::vector<RepeatedBlock> find_blocks(const ProgramParts& parts, const Schedule& schedule) {
  std::vector<KeptTensor> tensors;
  for (const StoredTensor& tensor : schedule.tensors) tensors.push_back({.bytes = bytes_of(parts, tensor)});
  std::vector<std::size_t> first_tile;  // of a pass: tiles are numbered behind the stored tensors
  for (const PassPlan& pass : schedule.passes) {
    first_tile.push_back(tensors.size());
    tensors.insert(tensors.end(), pass.tiles.size(), {.kind = KeptTensor::Kind::passing});
  }
  const std::vector<Shape> shapes = infer_shapes(parts.plan.graph, parts.spec.height, parts.spec.width);
  std::vector<TouchingStep> steps;
  for (const Place& place : places_of(schedule)) {
    const PassPlan& pass = schedule.passes[place.pass];
    const Instruction& instruction = pass.instructions[place.instruction];
    const ValueKind kind = parts.lowering.value(instruction.value).kind;
    TouchingStep step{.backward = pass.backward};
    if (!step.backward) {
      step.once = kind == ValueKind::input || kind == ValueKind::loss;
      step.cost = work_of(parts, instruction, shapes);
    }
    const auto add = [&](std::vector<int>& to, const Buffer& buffer) {
      if (buffer.where == Buffer::Where::stored) to.push_back(buffer.index);
      if (buffer.where == Buffer::Where::tile)
        to.push_back(static_cast<int>(first_tile[place.pass] + index(buffer.index)));
    };
    for (const Buffer& buffer : instruction.in) add(step.reads, buffer);
    add(step.backward ? step.reads : step.writes, instruction.argmax);
    add(step.writes, instruction.out);
    steps.push_back(std::move(step));
  }
  return lowering::find_blocks(tensors, steps);
}

Schedule repeat_blocks(const Schedule& schedule, const std::vector<RepeatedBlock>& blocks) {
  const std::vector<Place> places = places_of(schedule);
  std::vector<bool> made_again(schedule.tensors.size(), false);
  std::multimap<std::size_t, const RepeatedBlock*> before;  // by the pass that needs a block
  for (const RepeatedBlock& block : blocks) {
    before.emplace(places[block.before].pass, &block);
    for (const int tensor : block.tensors)
      if (index(tensor) < made_again.size()) made_again[index(tensor)] = true;
  }
  Schedule result = schedule;
  result.passes.clear();
  for (std::size_t k = 0; k < schedule.passes.size(); ++k) {
    const auto [begin, end] = before.equal_range(k);
    for (auto at = begin; at != end; ++at) {
      int current = -1;
      for (const std::size_t step : at->second->steps) {
        const PassPlan& from = schedule.passes[places[step].pass];
        if (current != static_cast<int>(places[step].pass)) {
          current = static_cast<int>(places[step].pass);
          result.passes.push_back({.tiles = from.tiles, .backward = true, .whole = from.whole, .repeats = current});
        }
        result.passes.back().instructions.push_back(from.instructions[places[step].instruction]);
      }
    }
    result.passes.push_back(schedule.passes[k]);
  }
  result.find_lifetimes(made_again);
  return result;
}

}  // namespace convoy::cpu
