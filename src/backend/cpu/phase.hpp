// SPDX-License-Identifier: Apache-2.0
// A phase plan made executable for one choice of kernels: its steps, and its share of the scratch memory.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/geometry.hpp"
#include "backend/cpu/schedule.hpp"
#include "backend/cpu/step.hpp"

namespace convoy::cpu {

/// How a phase runs. outer: threads take tiles, kernels made for one thread. inner: the whole batch as one tile,
/// kernels made for all threads.
struct PhaseChoice {
  Index tile = 0;  ///< images; divides the batch
  bool inner = true;
  std::array<Algorithm, 3> algorithms{};  ///< by Direction, for 3x3 stride-1 convolutions in fp32
  bool operator==(const PhaseChoice&) const = default;
};

/// What all phases of a program are made from.
struct ProgramParts {
  const Plan& plan;
  const CompileSpec& spec;
  const Lowering& lowering;
  const Schedule& schedule;
  const Geometry& geometry;
  Norms& norms;
  const KernelTable& kernels;
  const Onednn& library;
  Counters& counters;
  const StepParams& step;
  int threads = 1;
};

class Phase {
 public:
  Phase(const ProgramParts& parts, const PhasePlan& plan, const PhaseChoice& choice);
  Index scratch_bytes() const { return shared_bytes_ + threads_ * thread_bytes_; }
  /// The norms' vectors that the phase reads must be prepared.
  void run(Memory& memory) const;
  const PhaseChoice& choice() const { return choice_; }
  std::string describe() const;

 private:
  class Builder;
  std::vector<std::unique_ptr<Step>> steps_;
  PhaseChoice choice_;
  Index images_ = 0;
  int threads_ = 1;  ///< that take tiles
  Index shared_bytes_ = 0, thread_bytes_ = 0;
  std::string nodes_;
};

}  // namespace convoy::cpu
