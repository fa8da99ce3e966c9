// SPDX-License-Identifier: Apache-2.0
// What an operation is to the CPU backend; operations/NAME.cpp says it: which layouts it reads and makes, how it is
// scheduled, and the steps that compute it. The scheduler and the passes know no operation by name.
#pragma once
#include <span>

#include "backend/cpu/lowering.hpp"

namespace convoy::cpu {

class StepBuilder;
struct Instruction;

/// Whether an operation can read a group from a tile, so that the group is never stored. only_reader: where no other
/// operation reads the group.
enum class ReadsTile : std::uint8_t { never, only_reader, always };

struct OperationTraits {
  ReadsTile reads_tile = ReadsTile::never;
  bool whole_batch = false;            ///< it takes the whole batch at once, never tiles
  bool shares_pass = false;            ///< operations of one value are done in one pass: its tile is read once
  bool backward_reads_source = false;  ///< not only dy
  bool weight_gradient_apart = false;  ///< it has an instruction of its own, beside the one that makes dx
  bool reads_together = false;         ///< each of its instructions reads both sources (Slot::other)
  bool keeps_argmax = false;           ///< forward writes 16 bits for each element of the result, which backward reads
};

class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;
  /// `sources` are the kinds that the sources have; replaces them by those that the operation reads.
  virtual void reads(std::span<TensorKind> sources) const = 0;
  virtual TensorKind makes(std::span<const TensorKind> sources) const = 0;
  virtual OperationTraits traits(const Node& node) const = 0;
  /// Appends the steps of an instruction of kind forward, backward or weight_gradient.
  virtual void compile(const Instruction& instruction, StepBuilder& steps) const = 0;
};

/// Defined in operations/NAME.cpp for each struct of attributes that no group takes; one that is missing shows when the
/// program is linked.
template <class Attributes>
const Operation& operation_for();

/// Throws Error(internal) for nodes that are a part of a group.
const Operation& operation_of(const Node& node);

/// Conversions between layouts, which no node asks for.
const Operation& conversion();

/// The order of several sources that are read together: features if all of them are, else spatial.
void read_alike(std::span<TensorKind> kinds);

}  // namespace convoy::cpu
