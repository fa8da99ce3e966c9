// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/step_builder.hpp"

#include <algorithm>

#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/group.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// The odd line keeps buffers of equal size off the same cache sets.
Index padded(Index bytes) { return (bytes + 63) / 64 * 64 + 64; }

}  // namespace

StepBuilder::StepBuilder(const ProgramParts& parts, const PassPlan& plan, const PassChoice& choice, int copies)
    : parts_(parts), plan_(plan), choice_(choice), copies_(copies) {
  for (const int value : plan.tiles) tiles_.push_back(in_thread(tile() * layout(value).image_bytes()));
}

void StepBuilder::build() {
  for (const Instruction& instruction : plan_.instructions) {
    switch (instruction.kind) {
      case InstructionKind::evaluate:
        add_evaluation(instruction, *this);
        break;
      case InstructionKind::statistics:
        add_statistics(instruction, *this);
        break;
      case InstructionKind::accumulate:
        add_accumulation(instruction, *this);
        break;
      case InstructionKind::forward:
      case InstructionKind::backward:
      case InstructionKind::weight_gradient:
        operation_of(parts_.plan, value(instruction.value)).compile(instruction, *this);
        break;
    }
  }
}

const Parameter* StepBuilder::row(int id, std::size_t index) const {
  const int found = lowering::parameter_row(parts_.plan, value(id).node, index);
  return found < 0 ? nullptr : &parts_.plan.table.rows[static_cast<std::size_t>(found)];
}

Range StepBuilder::parameter(int id, std::size_t index) const {
  const Parameter* const parameter = row(id, index);
  return parameter ? parameter->range : Range{};
}

bool StepBuilder::trains(int id, std::size_t index) const {
  const Parameter* const parameter = row(id, index);
  return parameter && parameter->trainable;
}

Operand StepBuilder::operand(const Buffer& buffer, int id) const {
  switch (buffer.where) {
    case Buffer::Where::none:
      return {};
    case Buffer::Where::tile:
      return tiles_[static_cast<std::size_t>(buffer.index)];
    case Buffer::Where::stored:
      return {.where = Operand::Where::stored,
              .tensor = static_cast<std::size_t>(buffer.index),
              .image_bytes = layout(id).image_bytes()};
  }
  return {};
}

Operand StepBuilder::x(const Instruction& i) const {
  return operand(i[i.kind == InstructionKind::forward ? Slot::source : Slot::x], source(i));
}

Operand StepBuilder::in_turn(Index bytes) {
  const Operand result{.where = Operand::Where::turn, .offset = turn_at_};
  turn_at_ += padded(bytes);
  turn_bytes_ = std::max(turn_bytes_, turn_at_);
  return result;
}

Operand StepBuilder::in_thread(Index bytes, Needed needed) {
  if (takes_turns(needed)) return in_turn(bytes);
  const Operand result{.where = Operand::Where::thread, .offset = thread_bytes_};
  thread_bytes_ += padded(bytes);
  return result;
}

Operand StepBuilder::in_shared(Index bytes, Needed needed) {
  require(needed != Needed::by_run, "threads run at the same time, so they share nothing for one run");
  if (takes_turns(needed)) return in_turn(bytes);
  const Operand result{.where = Operand::Where::shared, .offset = shared_bytes_};
  shared_bytes_ += padded(bytes);
  return result;
}

Operand StepBuilder::partial_sums(const TensorLayout& layout, Index bytes) {
  Operand result = in_shared(images() * layout.padded_channels() * bytes);
  result.image_bytes = layout.padded_channels() * bytes;
  return result;
}

}  // namespace convoy::cpu
