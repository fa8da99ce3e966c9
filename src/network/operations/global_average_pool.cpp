// SPDX-License-Identifier: Apache-2.0
#include "network/operations/global_average_pool.hpp"

#include <algorithm>

namespace convoy {

Shape GlobalAveragePool::shape(const NodeInputs& inputs) const { return {inputs.first().c}; }
Contract GlobalAveragePool::contract() const { return {}; }
std::string GlobalAveragePool::text() const { return "global average pool"; }

OnnxOperators GlobalAveragePool::onnx(const NodeInputs&) const { return {{"GlobalAveragePool"}}; }

std::vector<OnnxOperators> GlobalAveragePool::onnx_forms() {
  return {{{"GlobalAveragePool"}}, {{"ReduceMean", {"x", "axes"}}}};
}

std::optional<OnnxFound<GlobalAveragePool>> GlobalAveragePool::from_onnx(const OnnxSite& site) {
  if (site.form == 0) return OnnxFound<GlobalAveragePool>{};
  std::vector<Index> axes = site.wholes("axes", {});
  if (const OnnxConstant* given = site.constant("axes")) axes.assign(given->values.begin(), given->values.end());
  for (Index& axis : axes)
    if (axis < 0) axis += 4;
  std::sort(axes.begin(), axes.end());
  if (axes != std::vector<Index>{2, 3}) site.refuse("averages over other dimensions than height and width");
  return OnnxFound<GlobalAveragePool>{};
}

}  // namespace convoy
