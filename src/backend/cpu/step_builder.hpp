// SPDX-License-Identifier: Apache-2.0
// Turns the instructions of a pass into steps, and hands out its scratch memory. Operations append their steps here.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/program_parts.hpp"
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

class StepBuilder {
 public:
  StepBuilder(const ProgramParts& parts, const PassPlan& plan, const PassChoice& choice, int copies);
  void build();

  const ProgramParts& parts() const { return parts_; }
  const PassChoice& choice() const { return choice_; }
  Index images() const { return parts_.spec.samples; }
  /// Images of a tile.
  Index tile() const { return choice_.inner ? images() : choice_.tile; }
  /// Threads that take tiles.
  int copies() const { return copies_; }
  template <class Kernels>
  const Kernels& kernels() const {
    return kernels_for<Kernels>(parts_.isa);
  }

  const Value& value(int id) const { return parts_.lowering.value(id); }
  const Node& node(int id) const { return parts_.node(value(id)); }
  const TensorLayout& layout(int id) const { return parts_.layout(id); }
  bool plain(int id) const { return parts_.plain(id); }
  /// The source that an instruction of an operation reads, or differentiates.
  int source(const Instruction& i) const { return value(i.value).sources[static_cast<std::size_t>(i.source)]; }
  /// The node's `index`-th parameter in the values block, and, at the same place, in the gradient block; empty: it has
  /// fewer.
  Range parameter(int id, std::size_t index) const;
  bool trains(int id, std::size_t index) const;

  /// `id`: the value whose layout the tensor has.
  Operand operand(const Buffer& buffer, int id) const;
  /// x, y, dy and dx of an operation's instruction; none where it has none.
  Operand x(const Instruction& i) const;
  Operand y(const Instruction& i) const { return operand(i.out, i.value); }
  Operand dy(const Instruction& i) const { return operand(i[Slot::dy], i.value); }
  Operand dx(const Instruction& i) const { return operand(i.out, source(i)); }
  /// How long the step that is added next needs scratch memory: until the pass ends, from its open() to its close(), or
  /// while it runs on a tile. In what one run needs, the steps of a thread take turns; in a pass over the whole batch,
  /// also in what a step needs, since one closes before the next opens (Pass::run).
  enum class Needed : std::uint8_t { by_pass, by_step, by_run };
  /// Each thread has its own.
  Operand in_thread(Index bytes, Needed needed = Needed::by_pass);
  Operand in_shared(Index bytes, Needed needed = Needed::by_pass);
  /// Rows of partial sums, [image][padded_channels]; `bytes`: of a sum.
  Operand partial_sums(const TensorLayout& layout, Index bytes = sizeof(float));

  template <class S, class... Args>
  void add(Args&&... args) {
    steps_.push_back(std::make_unique<S>(std::forward<Args>(args)...));
    turn_at_ = 0;
  }

  std::vector<std::unique_ptr<Step>> take_steps() { return std::move(steps_); }
  /// Of a thread, turn_bytes() apart.
  Index thread_bytes() const { return thread_bytes_; }
  Index turn_bytes() const { return turn_bytes_; }
  Index shared_bytes() const { return shared_bytes_; }

 private:
  const Parameter* row(int id, std::size_t index) const;
  bool takes_turns(Needed needed) const {
    return needed == Needed::by_run || (needed == Needed::by_step && choice_.inner);
  }
  Operand in_turn(Index bytes);

  const ProgramParts& parts_;
  const PassPlan& plan_;
  const PassChoice& choice_;
  const int copies_;
  std::vector<Operand> tiles_;
  std::vector<std::unique_ptr<Step>> steps_;
  Index thread_bytes_ = 0, shared_bytes_ = 0, turn_bytes_ = 0;
  Index turn_at_ = 0;  ///< what the step that is added next has of it so far
};

}  // namespace convoy::cpu
