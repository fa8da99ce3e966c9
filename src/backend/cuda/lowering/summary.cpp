// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/lowering/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/recomputation.hpp"

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
  const auto name = [&](NodeId node) { return graph.nodes[static_cast<std::size_t>(node)].name; };
  constexpr std::size_t most = 8;  // a stage's gradients are those of many
  if (step.nodes.size() > most) return name(step.nodes.front()) + " to " + name(step.nodes.back());
  std::string text;
  for (const NodeId node : step.nodes) text += (text.empty() ? "" : " + ") + name(node);
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
    (step.operation ? summary.graphs : summary.kernels) += step.launches;
    summary.beside += step.beside ? 1 : 0;
    if (!step.operation) continue;
    if (!step.again) count(summary, step.graph);
    summary.workspace_bytes = std::max(summary.workspace_bytes, step.operation->workspace_bytes());
  }
  summary.arena_bytes = execution.placement.total_bytes;
  return summary;
}

std::string describe(const Summary& s) {
  return fmt::format(
      "{} convolutions: {} with statistics, {} with a norm in front, {} with a join in front; {} weight gradients with a norm in front; data gradients: {} through a norm, {} through a join\n"
      "{} cuDNN graphs, {} of them beside others, and {} kernels per step; {:.1f} MB moved per image ({:.1f} MB of it in workspaces); largest workspace {:.1f} MB, activations {:.1f} MB\n",
      s.convolutions, s.statistics, s.prologues, s.joins, s.weight_prologues, s.data_fusions, s.data_joins, s.graphs,
      s.beside, s.kernels, s.bytes_per_image / 1e6, s.hidden_per_image / 1e6,
      static_cast<double>(s.workspace_bytes) / 1e6, static_cast<double>(s.arena_bytes) / 1e6);
}

namespace {

/// Filters and their gradients.
double weight_bytes(const Step& step) {
  auto bytes = static_cast<double>(step.other_bytes);
  if (!step.operation) return bytes;
  for (const Operand& operand : operands_of(step.graph))
    if (operand.role == Role::w || operand.role == Role::dw)
      bytes += static_cast<double>(operand.count() * storage_bytes(step.graph.precision));
  return bytes;
}

}  // namespace

std::vector<ProgramPart> parts_of(const ExecutionPlan& execution, const Graph& graph) {
  std::vector<ProgramPart> parts;
  for (const Step& step : execution.steps) {
    ProgramPart& part = parts.emplace_back();
    part.backward = step.section == Section::backward;
    part.again = step.again;
    part.nodes = names_of(step, graph);
    part.kernels = kernel_of(step);
    part.bytes = static_cast<double>(execution.bytes_moved(step)) + weight_bytes(step);
    if (step.operation) part.flops = flops_of(step.graph);
  }
  return parts;
}

std::string describe(const ExecutionPlan& execution, const Graph& graph) {
  std::string text = describe(summarise(execution));
  if (execution.recomputation.found > 0)
    text += "recomputation: " + convoy::tell(execution.recomputation, execution.placement.total_bytes / 4) + '\n';
  text += fmt::format("{:>5} {:<8} {:<34} {:>9} {:>9} {:>10} {:<52} {}\n", "stage", "", "step", "MB/image", "GF/image",
                      "MB weights", "nodes", "engine");
  std::size_t stage = 0;
  const auto samples = static_cast<double>(execution.samples);
  for (std::size_t k = 0; k < execution.steps.size(); ++k) {
    while (stage < execution.stages.size() && execution.stages[stage].end <= k) ++stage;
    const Step& step = execution.steps[k];
    std::string how;
    if (step.operation)
      how = fmt::format("{}, workspace {:.1f} MB{}", step.operation->engine(),
                        static_cast<double>(step.operation->workspace_bytes()) / 1e6,
                        step.hidden_bytes > 0 ? " (a tensor)" : "");
    text += fmt::format("{:>5} {:<8} {:<34} {:>9.3f} {:>9.3f} {:>10.2f} {:<52} {}\n", stage,
                        step.again                         ? "again"
                        : step.beside                      ? "beside"
                        : step.section == Section::forward ? "forward"
                                                           : "backward",
                        kernel_of(step), static_cast<double>(execution.bytes_moved(step)) / samples / 1e6,
                        step.operation ? flops_of(step.graph) / samples / 1e9 : 0.0, weight_bytes(step) / 1e6,
                        names_of(step, graph), how);
  }
  return text;
}

}  // namespace convoy::cuda
