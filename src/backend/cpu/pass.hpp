// SPDX-License-Identifier: Apache-2.0
// A pass made executable for one choice of kernels: its steps, and its share of the scratch memory.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/program_parts.hpp"
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

class Pass {
 public:
  Pass(const ProgramParts& parts, const PassPlan& plan, const PassChoice& choice);
  Index scratch_bytes() const { return shared_bytes_ + threads_ * (thread_bytes_ + turn_bytes_); }
  /// The norms' vectors that the pass reads must be prepared.
  void run(Memory& memory) const;
  const PassChoice& choice() const { return choice_; }
  const std::string& nodes() const { return nodes_; }
  /// How it runs: tiles, and the kernels of its steps.
  std::string kernels() const;

 private:
  /// False: a library failed.
  bool run_whole(const Memory& memory) const;
  bool run_tiles(const Memory& memory) const;

  std::vector<std::unique_ptr<Step>> steps_;
  PassChoice choice_;
  Index images_ = 0;
  int threads_ = 1;  ///< threads that take tiles
  Index shared_bytes_ = 0, thread_bytes_ = 0, turn_bytes_ = 0;
  std::string nodes_;
};

}  // namespace convoy::cpu
