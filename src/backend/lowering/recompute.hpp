// SPDX-License-Identifier: Apache-2.0
// Activation recomputation: which blocks of a training program run forward a second time, just before their backward,
// so that what they make in between need not be kept. A block is a range of the forward steps. What leaves it is kept;
// what stays inside has a gap in its lifetime. It works on steps as a backend made them, so a second run takes the same
// kernels on the same numbers and makes the same bits.
#pragma once
#include <functional>
#include <vector>

#include "backend/backend.hpp"
#include "backend/lowering/memory_plan.hpp"

namespace convoy::lowering {

/// A tensor as recomputation sees it.
struct KeptTensor {
  Index bytes = 0;
  /// activation: it may be made again. other: it stays where it is (statistics, what the input step made). passing: it
  /// lives within a few steps, which no boundary may part (a tile).
  enum class Kind : std::uint8_t { activation, other, passing };
  Kind kind = Kind::activation;
};

/// A step of a training program, and the tensors that it touches.
struct TouchingStep {
  std::vector<int> reads, writes;
  bool backward = false;
  bool once = false;  ///< it must not run again: what it writes is kept
  double cost = 0;    ///< of running it again, in any unit
};

/// A block that may run again.
struct RepeatedBlock {
  std::vector<std::size_t> steps;  ///< what of it must run again, in order
  std::vector<int> tensors;        ///< what these steps make again, needed or not
  std::size_t before = 0;          ///< the backward step that needs it first
  Index bytes = 0;                 ///< what need not be kept
  double cost = 0;
};

/// The blocks, in the order of the forward pass. They are cut so that what is kept at their ends plus the largest of
/// what lies inside is least. What comes after the last of them runs once: its backward follows at once. Forward steps
/// stand before the backward ones.
std::vector<RepeatedBlock> find_blocks(const std::vector<KeptTensor>& tensors, const std::vector<TouchingStep>& steps);

/// Those that run again, in order. `bytes_with`: the memory with these blocks. automatic: those that spare most for
/// their cost first, until it is at most `limit`; if it never is, the first of them with which it is least.
std::vector<RepeatedBlock> choose_blocks(Recompute wanted, const std::vector<RepeatedBlock>& blocks, Index limit,
                                         const std::function<Index(const std::vector<RepeatedBlock>&)>& bytes_with);

}  // namespace convoy::lowering
