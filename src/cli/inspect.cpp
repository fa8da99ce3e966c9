// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "backend/factory.hpp"
#include "backend/recomputation.hpp"
#include "checkpoint/file.hpp"
#include "cli/command.hpp"
#include "config/config.hpp"
#include "config/options.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/standard_output.hpp"
#include "core/text.hpp"
#include "data/dataset.hpp"
#include "engine/memory_use.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "network/freeze.hpp"

namespace convoy {
namespace {

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.4f}", text.empty() ? "" : ", ", value);
  return text;
}

std::string classes(const DatasetInfo& info) {
  std::string text = fmt::format("{}", info.classes);
  constexpr std::size_t shown = 10;
  for (std::size_t i = 0; i < std::min(shown, info.class_names.size()); ++i) {
    text += (i == 0 ? ": " : ", ") + one_line(info.class_names[i]);
  }
  return text + (info.class_names.size() > shown ? ", ..." : "");
}

std::string describe(const DatasetInfo& info) {
  std::string text = fmt::format("{}: {} in {}, digest {:016x}\n", info.split, counted(info.samples, "image"),
                                 counted(info.partitions.size(), "partition"), info.digest);
  text += fmt::format("  image       {} x {} x {} (h w c), uint8, encoding {}\n", info.height, info.width,
                      info.channels, info.encoding);
  text += fmt::format("  classes     {}\n", classes(info));
  text += fmt::format("  mean        {} (0 to 255, of the train split)\n  std         {}\n", numbers(info.mean),
                      numbers(info.std));
  text += fmt::format("  mean image  {}\n", info.mean_image.empty() ? "no" : "yes");
  text += fmt::format("  covariance  {}\n  source      {}\n", info.covariance.empty() ? "no" : "of the three colours",
                      info.source);
  for (const auto& partition : info.partitions) {
    const Seal seal = check_seal(partition.path);
    text += fmt::format("  {}  samples {} to {}, {:.1f} MB, seal ok\n", partition.path, partition.samples.begin,
                        partition.samples.end() - 1, static_cast<double>(seal.file_bytes) / 1e6);
  }
  return text;
}

std::string inspect_data(const std::string& folder) {
  std::string text;
  for (const char* split : {"train", "val"}) {
    if (has_split(folder, split)) text += describe(read_dataset_info(folder, split));
  }
  if (text.empty()) read_dataset_info(folder, "train");  // says what is missing
  return text +
         "seals cover all but the samples, which have checksums of their own: 'convoy-preprocess verify' reads those\n";
}

std::string indented(const std::string& lines) {
  std::istringstream stream(lines);
  std::string text;
  for (std::string line; std::getline(stream, line);) text += "  " + line + '\n';
  return text;
}

std::string describe(const TrainedData& data) {
  if (data.mean.empty()) return "data          not told: an older version wrote this checkpoint\n";
  std::string text = fmt::format("classes       {}: {}\n", data.class_names.size(),
                                 one_line(fmt::format("{}", fmt::join(data.class_names, ", "))));
  text += data.normalise == InputSpec::Normalise::per_image
              ? "normalisation " + normalisation_text(data) + "\n"
              : fmt::format("normalisation mean {:.4f}; deviation {:.4f}{}\n", fmt::join(data.mean, ", "),
                            fmt::join(data.std, ", "), data.mean_image == 0 ? "" : "; mean image");
  if (data.short_side == 0) return text;
  return text +
         fmt::format(
             "input         {} x {} of a short side of {}\ndata          digest {:016x} (train), {:016x} (val)\n",
             data.input_height, data.input_width, data.short_side, data.train_digest, data.val_digest);
}

std::string residuals_of(const FileMeta& file) {
  if (file.replica >= 0) return "holds what this replica has not sent";
  return file.shards.empty() ? "no residuals in this file" : "the shards hold what each replica has not sent";
}

/// How the replicas of the run were kept alike; a mean of models (convoy average) is of no such run.
std::string sync_of(const CheckpointMeta& meta) {
  if (const auto averaged = meta.texts.find("average_of"); averaged != meta.texts.end())
    return fmt::format("none: a mean of {} (average_of, below)",
                       counted(std::count(averaged->second.begin(), averaged->second.end(), '\n'), "model"));
  return meta.local_steps == 0 ? "gradients" : fmt::format("weights, {}", every(meta.local_steps, "step"));
}

std::string describe(const FileMeta& file) {
  const CheckpointMeta& meta = file.meta;
  const auto& at = meta.position;
  std::string text;
  if (file.replica >= 0) text += fmt::format("shard         of replica {}: no checkpoint by itself\n", file.replica);
  text += fmt::format("position      epoch {}, step {} of it; {} and {} in all\n", at.epoch, at.step_in_epoch,
                      counted(at.step, "step"), counted(at.images, "image"));
  text += fmt::format("replicas      {} (written by {})\n", meta.replicas, counted(meta.ranks, "rank"));
  text += fmt::format("sync          {}\n", sync_of(meta));
  if (meta.ema_decay > 0)
    text += fmt::format("average       moving, decay {}: below /ema, and what evaluation takes\n", meta.ema_decay);
  if (meta.has_outer) text += "outer         its optimizer's anchor and momentum: below /outer\n";
  if (meta.compression.is_on())
    text += fmt::format("wire          {}: {}\n", name_of(meta.compression.kind), residuals_of(file));
  text += describe(meta.data);
  text += fmt::format("plan          {:016x}\nconfiguration {}\n", meta.plan_digest, meta.configuration_hash);
  for (const auto& [name, value] : meta.numbers) text += fmt::format("{:<13} {}\n", name, value);
  for (const auto& [name, value] : meta.texts) {
    if (value.find('\n') == std::string::npos) {
      text += fmt::format("{:<13} {}\n", name, value);
    } else {
      text += name + '\n' + indented(value);
    }
  }
  return text;
}

std::string describe_tensor(const Hdf5File& file, const std::string& name) {
  const DatasetShape shape = file.shape(name);
  if (shape.element != Element::f32) return fmt::format("  {:<46} {}\n", name, shape.text());
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  file.read(name, Element::f32, std::as_writable_bytes(std::span(values)));
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return fmt::format("  {:<46} {:<26} norm {:.6g}\n", name, shape.text(), std::sqrt(squares));
}

std::string describe_group(const Hdf5File& file, const std::string& group) {
  std::string text;
  if (!file.exists(group)) return text;
  for (const auto& name : file.names(group)) text += describe_tensor(file, group + '/' + name);
  return text;
}

std::string inspect_checkpoint(const std::string& path) {
  const std::string file_path = resolve_checkpoint(path);
  std::string text = fmt::format("file          {}\n", file_path) + describe(read_file_meta(file_path));
  const Hdf5File file(file_path, Hdf5File::Access::read);
  text += "tensors\n" + describe_group(file, "/parameters") + describe_group(file, "/statistics");
  if (file.exists("/optimiser")) {
    for (const auto& slot : file.names("/optimiser")) text += describe_group(file, "/optimiser/" + slot);
  }
  if (file.exists("/ema")) text += describe_group(file, "/ema/parameters") + describe_group(file, "/ema/statistics");
  if (file.exists("/outer")) text += describe_group(file, "/outer/anchor") + describe_group(file, "/outer/momentum");
  return file.exists("/state") ? text + describe_tensor(file, "/state") : text;
}

/// Buckets that hold gradients of this node: `0`, `0-1`, or nothing.
std::string buckets_of(const Plan& plan, NodeId node) {
  Index first = -1, last = -1;
  for (const Parameter& row : plan.table.rows) {
    if (row.node != node || !row.trainable) continue;
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

std::string inspect_plan(const InspectConfig& config) {
  const TrainConfig& train = config.train;
  const GraphSpec model = with_usual_input(train.model, config.classes, config.channels, train.data.image_size);
  const Index size = model.image_size;
  const PlanSpec spec{.bucket_floats = std::max<Index>(16, static_cast<Index>(train.sync.bucket_mb * 262144)),
                      .frozen = train.frozen};
  const Plan plan = make_plan(build_graph(model), spec);
  const Cost cost = cost_of(plan.graph, size, size, find_frozen(plan.graph, train.frozen));
  std::string text = fmt::format("{}: {}, input {} x {} x {}\n", plan.graph.model, counted(model.classes, "class"),
                                 model.channels, size, size);
  text += fmt::format(
      "{} parameters in {} tensors, {} buckets; {:.3f} GMAC forward per image (1 MAC = 2 FLOP), {:.3f} GFLOP training; digest {:016x}\n\n",
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
  compile.recompute = train.device.recompute;
  // As if a run had one set of weights, the usual optimiser, and no samples in memory.
  const auto limit_of = [&](const MemoryLimit& memory, Backend& backend) {
    const OptimiserSpec optimiser;
    return arena_limit(memory, other_floats({}, plan, backend.layout(plan, optimiser),
                                            backend.compile(plan, optimiser)->arena_floats(), false));
  };
  const bool limited = compile.recompute == Recompute::automatic;
  if (!config.card.empty()) {
    if (limited)
      compile.arena_limit =
          limit_of({.bytes = memory_of_card(read_card(config.card)), .name = {}}, *make_cpu_backend(1));
    return text + fmt::format("\ntraining program for {} samples on a described card\n{}", train.batch,
                              describe_on_card(read_card(config.card), plan, compile));
  }
  std::string chosen;
  const auto backend = make_backend({.device = train.device.device, .threads = train.device.threads}, chosen);
  if (limited) compile.arena_limit = limit_of(memory_of(*backend, 1), *backend);
  const auto program = backend->compile(plan, compile);
  text += fmt::format("\ntraining program for {} samples: {}; activations {:.1f} MB, {} stages\n", train.batch, chosen,
                      static_cast<double>(program->arena_floats()) * 4 / 1e6, program->stages().size());
  if (compile.recompute != Recompute::off)
    text += fmt::format("recomputation: {}\n", tell(program->recomputation(), program->arena_floats()));
  text += program->describe();
  if (text.back() != '\n') text += '\n';
  return text;
}

Exit run_inspect(const Words& words) {
  const InspectConfig config = parse_inspect(words);
  if (config.what == "data") {
    write_output(inspect_data(config.path));
  } else if (config.what == "checkpoint") {
    write_output(inspect_checkpoint(config.path));
  } else if (config.what == "plan") {
    write_output(inspect_plan(config));
  } else {
    write_output(version_text());
  }
  return Exit::ok;
}

}  // namespace

std::string read_card(const std::string& path) {
  const auto text = text_of_file(path);
  if (!text)
    fail(Exit::usage, "cannot read the card's description '{}' (there is no such file); see docs/cuda.md", path);
  return plain_text(*text, path, Exit::usage);
}

Command inspect_command() {
  return {
      .name = "inspect",
      .overview = {"inspect data|checkpoint|plan|build", "a data set, a checkpoint, a compiled network, this program"},
      .usage = "convoy inspect data DIR | checkpoint PATH | plan [options] | build",
      .text = "Shows a prepared data set, a checkpoint, what a network compiles to, or what this program is built of.",
      .first_words = {"data", "checkpoint", "plan", "build"},
      .lists_networks = true,
      .see_options = see_options<InspectConfig>,
      .alone = run_inspect};
}

}  // namespace convoy
