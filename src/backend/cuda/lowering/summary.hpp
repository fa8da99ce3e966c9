// SPDX-License-Identifier: Apache-2.0
// What an execution plan is made of, as numbers and as text: for `convoy inspect plan`, the plan check and
// docs/cuda.md.
#pragma once
#include <string>
#include <vector>

#include "backend/cuda/lowering/execution_plan.hpp"

namespace convoy::cuda {

struct Summary {
  int convolutions = 0;         ///< forward
  int statistics = 0;           ///< convolutions with the statistics of their output
  int prologues = 0;            ///< convolutions with batch norm and ReLU of their input
  int joins = 0;                ///< convolutions with the sum of a block's end in front
  int weight_prologues = 0;     ///< weight gradients with batch norm and ReLU of their input
  int data_fusions = 0;         ///< data gradients with ReLU's mask and a batch norm's sums
  int data_joins = 0;           ///< data gradients across a block's end
  int graphs = 0, kernels = 0;  ///< launches of a step: cuDNN's and ours
  int beside = 0;               ///< graphs that run beside the row of launches
  double bytes_per_image = 0;   ///< activations: each once for each step that accesses it, hidden ones twice
  double hidden_per_image = 0;  ///< the part of them that lies in workspaces
  Index workspace_bytes = 0;    ///< the largest
  Index arena_bytes = 0;        ///< after sharing memory
};

Summary summarise(const ExecutionPlan& execution);
std::string describe(const Summary& summary);
/// A part for each step.
std::vector<ProgramPart> parts_of(const ExecutionPlan& execution, const Graph& graph);
/// One line per step: stage, section, what, bytes and FLOP per image, bytes of weights, nodes, engine and workspace.
std::string describe(const ExecutionPlan& execution, const Graph& graph);

}  // namespace convoy::cuda
