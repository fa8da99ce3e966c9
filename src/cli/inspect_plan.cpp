// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "backend/factory.hpp"
#include "cli/inspect.hpp"
#include "core/errors.hpp"
#include "core/plain_text.hpp"

namespace convoy {
namespace {

/// Buckets that hold gradients of this node: `0`, `0-1`, or nothing.
std::string buckets_of(const Plan& plan, NodeId node) {
  Index first = -1, last = -1;
  for (const Parameter& row : plan.table.rows) {
    if (row.node != node) continue;
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      if (!plan.buckets[b].contains(row.range.begin)) continue;
      const auto bucket = static_cast<Index>(b);
      first = first < 0 ? bucket : std::min(first, bucket);
      last = std::max(last, bucket);
    }
  }
  if (first < 0) return "";
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

Index parameters_of(const Node& node) {
  Index count = 0;
  for (const ParameterSpec& parameter : node.parameters) count += parameter.count();
  return count;
}

std::string table_of(const Plan& plan, Index size) {
  const auto shapes = infer_shapes(plan.graph, size, size);
  std::string text = fmt::format("{:<28} {:<18} {:>11} {:>14} {:>7}  {}\n", "node", "output c h w", "parameters", "MAC",
                                 "bucket", "operation");
  for (const NodeId id : plan.schedule) {
    const auto i = static_cast<std::size_t>(id);
    const Node& node = plan.graph.nodes[i];
    const Shape& shape = shapes[i];
    text += fmt::format("{:<28} {:<18} {:>11} {:>14.0f} {:>7}  {}\n", node.name,
                        fmt::format("{} {} {}", shape.c, shape.h, shape.w), parameters_of(node), macs_of(node, shape),
                        buckets_of(plan, id), describe(node.attributes));
  }
  return text;
}

std::string read_card(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    fail(Exit::usage, "cannot read the card's description '{}' ({}); see docs/cuda.md", path, std::strerror(errno));
  return plain_text({std::istreambuf_iterator<char>(file), {}}, path, Exit::usage);
}

}  // namespace

std::string inspect_plan(const InspectConfig& config) {
  const TrainConfig& train = config.train;
  const GraphSpec model = with_usual_input(train.model, config.classes, config.channels, train.data.image_size);
  const Index size = model.image_size;
  const PlanSpec spec{.bucket_floats = std::max<Index>(16, static_cast<Index>(train.sync.bucket_mb * 262144))};
  const Plan plan = make_plan(build_graph(model), spec);
  const Cost cost = cost_of(plan.graph, size, size);
  std::string text =
      fmt::format("{}: {} classes, input {} x {} x {}\n", plan.graph.model, model.classes, model.channels, size, size);
  text += fmt::format(
      "{} parameters in {} tensors, {} buckets; {:.3f} GMAC forward an image (1 MAC = 2 FLOP), {:.3f} GFLOP training; digest {:016x}\n\n",
      cost.parameters, plan.table.rows.size(), plan.buckets.size(), cost.macs / 1e9, cost.training_flops / 1e9,
      plan.digest);
  text += table_of(plan, size);

  CompileSpec compile;
  compile.samples = train.batch;
  compile.height = compile.width = compile.input.height = compile.input.width = size;
  compile.input.channels = model.channels;
  compile.precision = train.device.precision;
  compile.tuning = train.device.tuning;
  compile.options = train.device.options;
  if (!config.card.empty()) {
    return text + fmt::format("\ntraining program for {} samples on a described card\n{}", train.batch,
                              describe_on_card(read_card(config.card), plan, compile));
  }
  std::string chosen;
  const auto backend = make_backend({.device = train.device.device, .threads = train.device.threads}, chosen);
  const auto program = backend->compile(plan, compile);
  text += fmt::format("\ntraining program for {} samples: {}; activations {:.1f} MB, {} stages\n{}", train.batch,
                      chosen, static_cast<double>(program->arena_floats()) * 4 / 1e6, program->stages().size(),
                      program->describe());
  if (text.back() != '\n') text += '\n';
  return text;
}

}  // namespace convoy
