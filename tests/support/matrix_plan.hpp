// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "network/plan.hpp"

namespace convoy {

/// A plan of weights of these shapes, without a network around them.
inline Plan matrix_plan(const std::vector<std::vector<Index>>& shapes, float decay) {
  Plan plan;
  Index at = 0;
  for (const std::vector<Index>& shape : shapes) {
    Parameter& row = plan.table.rows.emplace_back();
    row.shape = shape;
    row.decay = decay;
    row.range = {at, 1};
    for (const Index side : shape) row.range.count *= side;
    at = align_floats(row.range.end());
  }
  plan.table.parameters = {0, at};
  plan.table.statistics = plan.table.flags = plan.table.exchange = {at, 0};
  return plan;
}

}  // namespace convoy
