// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/pass_cost.hpp"

#include <set>

#include "backend/cpu/operation.hpp"

namespace convoy::cpu {
namespace {

/// How often the instruction multiplies by the operation's weights, or sums their gradient, in units of the forward
/// pass.
int products_of(const ProgramParts& parts, const Instruction& instruction, const Value& value) {
  if (instruction.kind != InstructionKind::backward) return 1;
  const bool makes_weights = !operation_of(parts.plan, value).traits(parts.node(value)).weight_gradient_apart;
  int trained = 0;
  for (const Parameter& row : parts.plan.table.rows)
    trained |= static_cast<int>(row.node == value.node && row.trainable);
  return (instruction.out ? 1 : 0) + (makes_weights ? trained : 0);
}

Index parameter_bytes(const ParameterTable& table, NodeId node) {
  Index floats = 0;
  for (const Parameter& row : table.rows)
    if (row.node == node) floats += row.range.count;
  return floats * static_cast<Index>(sizeof(float));
}

}  // namespace

PassCost cost_of(const ProgramParts& parts, const PassPlan& pass, const std::vector<Shape>& shapes) {
  PassCost cost;
  std::set<int> tensors;
  const auto touch = [&](const Buffer& buffer) {
    if (buffer.where != Buffer::Where::stored || !tensors.insert(buffer.index).second) return;
    cost.bytes += static_cast<double>(bytes_of(parts, parts.schedule.tensors[static_cast<std::size_t>(buffer.index)]));
  };
  for (const Instruction& instruction : pass.instructions) {
    for (const Buffer& buffer : instruction.in) touch(buffer);
    touch(instruction.out);
    touch(instruction.argmax);
    const Value& value = parts.lowering.value(instruction.value);
    const bool of_operation = instruction.kind == InstructionKind::forward ||
                              instruction.kind == InstructionKind::backward ||
                              instruction.kind == InstructionKind::weight_gradient;
    if (!of_operation || value.kind != lowering::ValueKind::operation) continue;
    cost.flops += 2 * static_cast<double>(parts.spec.samples) * products_of(parts, instruction, value) *
                  macs_of(parts.node(value), shapes[static_cast<std::size_t>(value.node)]);
    cost.bytes += static_cast<double>(parameter_bytes(parts.plan.table, value.node));
  }
  return cost;
}

Index bytes_of(const ProgramParts& parts, const StoredTensor& tensor) {
  const TensorLayout& layout = parts.layout(tensor.value);
  return parts.spec.samples * (tensor.argmax ? layout.image * 2 : layout.image_bytes());
}

}  // namespace convoy::cpu
