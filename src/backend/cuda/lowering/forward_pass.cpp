// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/forward_pass.hpp"

#include "backend/cuda/operations/operations.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {

ForwardPass::ForwardPass(PlanBuilder& plan_builder, KernelSelector& kernel_selector)
    : builder(plan_builder), selector(kernel_selector), tensors_(plan_builder.values().size()) {}

void ForwardPass::run() {
  for (int id = 0; id < builder.value_count(); ++id) {
    const Value& value = builder.value(id);
    if (!value.used || is_stored(id)) continue;
    switch (value.kind) {
      case ValueKind::input:
      case ValueKind::operation:
      case ValueKind::loss:
        std::visit([&](const auto& attributes) { forward(*this, id, attributes); }, builder.node(id).attributes);
        break;
      case ValueKind::conversion:
        convert(*this, id);
        break;
      case ValueKind::group:  // evaluated where it is first read
        break;
    }
    if (id == 0) add_evaluation_norms(*this);
  }
  std::vector<int> rest;  // of values that the loss doesn't depend on, and what the backward pass alone reads
  for (const auto& [norm, waiting] : waiting_) rest.push_back(norm);
  settle(rest);
}

BufferRef ForwardPass::read(int id) {
  if (is_stored(id)) return tensor(id).value;
  require(builder.value(id).kind == ValueKind::group, "an operation is read before it ran");
  return evaluate(*this, id);
}

bool ForwardPass::needs_statistics(int id) const {
  return builder.mode() != Mode::evaluate && !builder.value(id).norms.empty();
}

}  // namespace convoy::cuda
