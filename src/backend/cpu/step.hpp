// SPDX-License-Identifier: Apache-2.0
// What a pass does to one tile of images, and where it finds its tensors.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/norms.hpp"

namespace convoy::cpu {

/// Everything that a launch sees; addresses are set by bind, the rest by feed and launch.
struct Memory {
  std::vector<std::byte*> tensors;  ///< stored tensors
  std::byte* scratch = nullptr;     ///< of the pass that runs
  std::byte* thread_scratch = nullptr;
  std::byte* turn_scratch = nullptr;
  Index thread_bytes = 0;
  const float* values = nullptr;
  float* gradients = nullptr;
  float* losses = nullptr;
  NormStep norm_step;

  std::vector<SampleSpec> samples;
  const std::uint8_t* images = nullptr;
  Index valid = 0;
  float scale = 0;
  bool finite = true;  ///< the losses of the last forward pass
};

struct Tile {
  int thread = 0;
  Index first = 0, count = 0;
  bool opening = true;  ///< its thread's first
};

struct Operand {
  enum class Where : std::uint8_t { none, stored, shared, thread, turn };
  Where where = Where::none;
  std::size_t tensor = 0;
  Index offset = 0;
  Index image_bytes = 0;  ///< 0: the same for all tiles of a thread

  explicit operator bool() const { return where != Where::none; }
  std::byte* at(const Memory& memory, const Tile& tile) const {
    switch (where) {
      case Where::none:
        return nullptr;
      case Where::stored:
        return memory.tensors[tensor] + tile.first * image_bytes;
      case Where::shared:
        return memory.scratch + offset + tile.first * image_bytes;
      case Where::thread:
        return memory.thread_scratch + tile.thread * memory.thread_bytes + offset;
      case Where::turn:
        return memory.turn_scratch + tile.thread * memory.thread_bytes + offset;
    }
    return nullptr;
  }
};

class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  /// Runs before the first tile, on the main thread: puts weights into the kernel's order.
  virtual void open(const Memory&) {}
  /// False: a library failed. Called by several threads at once, each with tiles of its own.
  virtual bool run(const Memory& memory, const Tile& tile) = 0;
  /// Runs after the last tile, on the main thread; `threads` threads had tiles.
  virtual void close(const Memory&, int threads) { (void)threads; }
  /// Kernels, for Program::describe(); empty: not worth a word.
  virtual std::string describe() const { return {}; }
};

}  // namespace convoy::cpu
