// SPDX-License-Identifier: Apache-2.0
// A plan of a convolution, a batch norm and a linear layer, written by hand, with its set layout and formula-made sets:
// for tests of what stores and moves parameter sets.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "core/hash.hpp"
#include "network/plan.hpp"

namespace convoy {

/// Places in the block: the same tensors in another order, with other gaps, are the same network.
enum class Placing : std::uint8_t { forward, backward_with_gaps };

struct SmallPlan {
  Plan plan;
  SetLayout layout;
};

inline SmallPlan small_plan(Placing placing = Placing::forward, std::size_t slots = 1, Index classes = 10) {
  std::vector<Parameter> rows;
  const auto add = [&](const std::string& name, Kind kind, std::vector<Index> shape) {
    Parameter row;
    row.name = name;
    row.kind = kind;
    row.range.count = 1;
    for (const Index n : shape) row.range.count *= n;
    row.shape = std::move(shape);
    rows.push_back(row);
  };
  add("conv1.weight", Kind::weight, {5, 3, 3, 3});
  add("bn1.weight", Kind::norm_scale, {5});
  add("bn1.bias", Kind::norm_shift, {5});
  add("fc.weight", Kind::weight, {classes, 5});
  add("fc.bias", Kind::bias, {classes});

  const Index gap = placing == Placing::forward ? 0 : 32;
  if (placing == Placing::backward_with_gaps) rows = {rows[4], rows[3], rows[2], rows[1], rows[0]};
  SmallPlan result;
  Index end = gap;
  for (Parameter& row : rows) {
    row.range.begin = end;
    end += align_floats(row.range.count) + gap;
  }
  result.plan.graph.model = "small";
  result.plan.graph.classes = classes;
  result.plan.table.rows = rows;
  result.plan.table.parameters = {0, end};
  result.plan.table.norms = {{"bn1", 0, {gap, 5}, {gap + 16, 5}}};
  result.plan.digest = 0xfeedfacecafebeefULL;

  SetLayout& layout = result.layout;
  static constexpr std::array names{"momentum", "second", "third"};
  layout.slots = std::span(names).first(slots);
  layout.values = layout.trained = {0, end};
  layout.optimiser = {end, static_cast<Index>(slots) * end};
  layout.statistics = {layout.optimiser.end(), gap + 32};
  layout.moving = layout.statistics;
  layout.state = {layout.statistics.end(), 16};
  return result;
}

/// Every tensor's elements are a function of (seed, part, tensor name, index); padding stays 0.
inline HostSet formula_set(const SmallPlan& small, std::uint64_t seed) {
  HostSet set;
  set.block.assign(static_cast<std::size_t>(small.layout.count()), 0.0F);
  const auto fill = [&](const std::string& name, Range range) {
    for (Index i = 0; i < range.count; ++i) {
      const std::uint64_t bits = mix_bits(hash_text(name, seed) + static_cast<std::uint64_t>(i));
      set.block[static_cast<std::size_t>(range.begin + i)] = static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F;
    }
  };
  for (const Parameter& row : small.plan.table.rows) {
    fill("value " + row.name, {small.layout.values.begin + row.range.begin, row.range.count});
    for (std::size_t slot = 0; slot < small.layout.slots.size(); ++slot)
      fill("slot " + std::to_string(slot) + row.name,
           {small.layout.slot(slot).begin + row.range.begin, row.range.count});
  }
  for (const NormStatistics& norm : small.plan.table.norms) {
    fill("mean " + norm.name, {small.layout.statistics.begin + norm.mean.begin, norm.mean.count});
    fill("var " + norm.name, {small.layout.statistics.begin + norm.variance.begin, norm.variance.count});
  }
  fill("state", small.layout.state);
  return set;
}

}  // namespace convoy
