// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::cuda {
namespace {

void count(Summary& summary, const ConvolutionGraph& graph) {
  switch (graph.pass) {
    case Pass::forward:
      ++summary.convolutions;
      summary.statistics += graph.statistics ? 1 : 0;
      summary.prologues += graph.fusion == Fusion::norm ? 1 : 0;
      summary.joins += joins(graph.fusion) ? 1 : 0;
      break;
    case Pass::data_gradient:
      summary.data_fusions += graph.fusion == Fusion::norm ? 1 : 0;
      summary.data_joins += joins(graph.fusion) ? 1 : 0;
      break;
    case Pass::weight_gradient:
      summary.weight_prologues += graph.fusion != Fusion::none ? 1 : 0;
      break;
  }
}

std::string names_of(const Step& step, const Graph& graph) {
  std::string text;
  for (const NodeId node : step.nodes)
    text += (text.empty() ? "" : " + ") + graph.nodes[static_cast<std::size_t>(node)].name;
  return text;
}

std::string kernel_of(const Step& step) { return step.operation ? describe_fusion(step.graph) : step.what; }

}  // namespace

Summary summarise(const ExecutionPlan& execution) {
  Summary summary;
  const auto samples = static_cast<double>(execution.samples);
  for (const Step& step : execution.steps) {
    summary.bytes_per_image += static_cast<double>(execution.bytes_moved(step)) / samples;
    summary.hidden_per_image += static_cast<double>(step.hidden_bytes) / samples;
    ++(step.operation ? summary.graphs : summary.kernels);
    if (!step.operation) continue;
    count(summary, step.graph);
    summary.workspace_bytes = std::max(summary.workspace_bytes, step.operation->workspace_bytes());
  }
  summary.arena_bytes = execution.placement.total_bytes;
  return summary;
}

std::string describe(const Summary& s) {
  return fmt::format(
      "{} convolutions: {} with statistics, {} with a norm in front, {} with a join in front; {} weight gradients with a norm in front; data gradients: {} through a norm, {} through a join\n"
      "{} cuDNN graphs and {} kernels a step; {:.1f} MB moved per image ({:.1f} MB of it in workspaces); largest workspace {:.1f} MB, activations {:.1f} MB\n",
      s.convolutions, s.statistics, s.prologues, s.joins, s.weight_prologues, s.data_fusions, s.data_joins, s.graphs,
      s.kernels, s.bytes_per_image / 1e6, s.hidden_per_image / 1e6, static_cast<double>(s.workspace_bytes) / 1e6,
      static_cast<double>(s.arena_bytes) / 1e6);
}

std::vector<ProgramPart> parts_of(const ExecutionPlan& execution, const Graph& graph) {
  std::vector<ProgramPart> parts;
  for (const Step& step : execution.steps) {
    ProgramPart& part = parts.emplace_back();
    part.backward = step.section == Section::backward;
    part.nodes = names_of(step, graph);
    part.kernels = kernel_of(step);
    part.bytes = static_cast<double>(execution.bytes_moved(step));
    if (!step.operation) continue;
    part.flops = flops_of(step.graph);
    for (const Operand& operand : operands_of(step.graph))
      if (operand.role == Role::w || operand.role == Role::dw)
        part.bytes += static_cast<double>(operand.count() * storage_bytes(step.graph.precision));
  }
  return parts;
}

std::string describe(const ExecutionPlan& execution, const Graph& graph) {
  std::string text = describe(summarise(execution));
  text += fmt::format("{:>5} {:<8} {:<34} {:>9} {:<52} {}\n", "stage", "", "step", "MB/image", "nodes", "engine");
  std::size_t stage = 0;
  for (std::size_t k = 0; k < execution.steps.size(); ++k) {
    while (stage < execution.stages.size() && execution.stages[stage].end <= k) ++stage;
    const Step& step = execution.steps[k];
    std::string how;
    if (step.operation)
      how = fmt::format("{}, workspace {:.1f} MB{}", step.operation->engine(),
                        static_cast<double>(step.operation->workspace_bytes()) / 1e6,
                        step.hidden_bytes > 0 ? " (a tensor)" : "");
    text += fmt::format("{:>5} {:<8} {:<34} {:>9.3f} {:<52} {}\n", stage,
                        step.section == Section::forward ? "forward" : "backward", kernel_of(step),
                        static_cast<double>(execution.bytes_moved(step)) / static_cast<double>(execution.samples) / 1e6,
                        names_of(step, graph), how);
  }
  return text;
}

}  // namespace convoy::cuda
