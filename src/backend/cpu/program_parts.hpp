// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "backend/cpu/convolution_kernel.hpp"
#include "backend/cpu/geometry.hpp"
#include "backend/cpu/kernels.hpp"
#include "backend/cpu/norms.hpp"
#include "backend/cpu/schedule.hpp"

namespace convoy::cpu {

/// How a pass runs. outer: threads take tiles, kernels made for one thread. inner: the whole batch as one tile, kernels
/// made for all threads.
struct PassChoice {
  Index tile = 0;  ///< images; divides the batch
  bool inner = true;
  /// One for each Direction; only convolutions have a choice.
  std::array<Algorithm, 3> algorithms{};
  bool operator==(const PassChoice&) const = default;
};

/// What all passes of a program are made from.
struct ProgramParts {
  const Plan& plan;
  const CompileSpec& spec;
  const Lowering& lowering;
  const Schedule& schedule;
  const Geometry& geometry;
  Norms& norms;
  const Onednn& onednn;
  Counters& counters;
  const StepParams& step;
  Isa isa = Isa::avx2;
  int threads = 1;

  const Node& node(const Value& value) const { return plan.graph.nodes[static_cast<std::size_t>(value.node)]; }
  const TensorLayout& layout(int value) const { return geometry.layouts[static_cast<std::size_t>(value)]; }
  /// Whether the value is stored in fp32 in the order n c h w.
  bool plain(int value) const { return geometry.plain(kind_of(lowering.value(value))); }
};

}  // namespace convoy::cpu
