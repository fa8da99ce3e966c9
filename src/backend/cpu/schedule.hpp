// SPDX-License-Identifier: Apache-2.0
// Lowered values in order of execution: a list of *passes* over the batch. A pass runs its instructions tile by tile (a
// few images at a time), so that what one instruction writes is still in cache when the next reads it; only between
// passes does the whole batch meet, as batch norm and weight gradients demand. An operation that is fused with nothing
// is a pass of one instruction. Still free of sizes.
#pragma once
#include <array>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/lowering.hpp"
#include "backend/lowering/memory_plan.hpp"
#include "backend/lowering/stages.hpp"

namespace convoy::cpu {

class Operation;

/// Where an instruction finds a tensor.
struct Buffer {
  enum class Where : std::uint8_t { none, stored, tile };
  Where where = Where::none;
  int index = -1;  ///< stored: of Schedule::tensors; tile: of PassPlan::tiles
  explicit operator bool() const { return where != Where::none; }
  bool operator==(const Buffer&) const = default;
};

/// evaluate, statistics, accumulate: of groups and batch norms (operations/group.hpp). The others are an operation's;
/// the loss makes its gradient in forward.
enum class InstructionKind : std::uint8_t { evaluate, statistics, accumulate, forward, backward, weight_gradient };

/// Places in Instruction::in.
enum class Slot : std::uint8_t {
  source = 0,  ///< forward: the source; statistics: the value
  dy = 0,      ///< backward, weight_gradient
  x = 1,       ///< backward, weight_gradient: the source, where they read it
  other = 2,   ///< forward, backward: the second source, where an instruction reads both
  gradient = 0,
  self,
  second,
  output,
  norm0,
  norm1,  ///< the values that batch norms in the group normalise
  term0,
  term1,  ///< evaluate; accumulate: where the derivative reads the sum of the terms
};

struct Instruction {
  InstructionKind kind{};
  int value = 0;                     ///< the value that is computed or differentiated
  int source = 0;                    ///< forward, backward: which one of an operation's sources
  std::array<Buffer, 8> in{};        ///< one for each Slot
  Buffer out{}, argmax{};            ///< out may be none: dx of sources without a gradient, the loss's gradient
  int norm = -1;                     ///< accumulate: the batch norm that its gradient comes through
  std::array<int, 2> norms{-1, -1};  ///< accumulate: the batch norms that its result goes into

  Buffer& operator[](Slot place) { return in[static_cast<std::size_t>(place)]; }
  const Buffer& operator[](Slot place) const { return in[static_cast<std::size_t>(place)]; }
};

/// A tensor of the whole batch.
struct StoredTensor {
  int value = 0;
  bool argmax = false;          ///< 16 bits for each element of the value instead of the elements
  lowering::Lifetime lifetime;  ///< its steps are passes; its bytes depend on sizes, which the schedule doesn't know
};

struct PassPlan {
  std::vector<Instruction> instructions;
  std::vector<int> tiles;          ///< values whose layouts the tile buffers have
  std::vector<int> statistics_of;  ///< values whose statistics are complete at its end
  std::vector<int> products_of;    ///< norms whose gradient sums are complete at its end
  std::vector<int> final_rows;     ///< parameters whose gradients are complete at its end
  bool backward = false;
  bool whole = false;  ///< one of its instructions takes the whole batch at once
  int repeats = -1;    ///< the forward pass of which it runs instructions again, with the same kernels; -1: none
};

struct Schedule {
  std::vector<PassPlan> passes;
  std::vector<StoredTensor> tensors;
  std::vector<Buffer> value_buffers;  ///< one a value; none: it is never stored
  std::vector<lowering::FinalRow> final_rows() const;
  /// From the passes that touch them. `made_again`: of each tensor, whether passes that repeat others make it a second
  /// time; empty: none is.
  void find_lifetimes(const std::vector<bool>& made_again = {});
};

Schedule make_schedule(const Plan& plan, const Lowering& lowering, Mode mode);

/// The stages of a program that follows the schedule.
std::vector<lowering::Stage> stages_of(const Plan& plan, const Lowering& lowering, const Schedule& schedule, Mode mode);

/// The operation that computes a value, which is no group.
const Operation& operation_of(const Plan& plan, const Value& value);

}  // namespace convoy::cpu
