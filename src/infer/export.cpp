// SPDX-License-Identifier: Apache-2.0
#include "infer/export.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <vector>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "infer/host_model.hpp"
#include "infer/output_file.hpp"
#include "interchange/names.hpp"
#include "interchange/onnx.hpp"
#include "interchange/tensor_file.hpp"
#include "io/seal.hpp"
#include "network/taken_name.hpp"

namespace convoy {
namespace {

using Normalise = InputSpec::Normalise;
using Metadata = std::map<std::string, std::string>;

/// Where each parameter and each running statistic lies in the set, by its name.
std::map<std::string, Range> places_of(const HostModel& model) {
  std::map<std::string, Range> places;
  for (const StateEntry& entry : state_dict_of(model.plan)) {
    switch (entry.part) {
      case StateEntry::Part::values:
        places[entry.name] = {model.layout.values.begin + entry.range.begin, entry.range.count};
        break;
      case StateEntry::Part::statistics:
        places[entry.name] = {model.layout.statistics.begin + entry.range.begin, entry.range.count};
        break;
      case StateEntry::Part::batches:
        break;
    }
  }
  return places;
}

std::span<const float> part_of(const HostModel& model, Range range) {
  return std::span(model.set.block)
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.count));
}

std::string json_of(const auto& values) { return Json(values).text(-1, Json::Order::as_written); }

/// Of pixels from 0 to 1, as torchvision writes them.
std::vector<double> per_one(const std::vector<double>& pixel_units) {
  constexpr double white = 255;
  std::vector<double> values = pixel_units;
  for (double& value : values) value /= white;
  return values;
}

/// What follows the name of a network of a file that is another than Convoy's of this name.
const char* mark_of(const SavedModel& saved, const HostModel& model) {
  GraphSpec spec = saved.config.model;
  spec.classes = model.plan.graph.classes;
  spec.channels = static_cast<Index>(saved.file.meta.data.mean.size());
  spec.image_size = model.input.height;
  return has_taken_name(spec) ? " (changed)" : "";
}

/// What a user of the file must know: what it computes, on which input, and where it is from.
Metadata describe(const SavedModel& saved, const HostModel& model) {
  const CheckpointMeta& meta = saved.file.meta;
  const TrainedData& data = meta.data;
  const Index side = std::min(model.input.height, model.input.width);
  return {{"producer", "convoy " + build_id()},
          {"network", saved.config.model.model + mark_of(saved, model)},
          {"variant", model.plan.graph.model + mark_of(saved, model)},
          {"classes", fmt::format("{}", model.plan.graph.classes)},
          {"class_names", json_of(data.class_names)},
          {"layout", data.mean.size() == 3 ? "n c h w, c = red, green, blue" : "n c h w"},
          {"normalization", name_of(saved.config.data.normalise)},
          {"mean", json_of(per_one(data.mean))},
          {"std", json_of(per_one(data.std))},
          {"crop_size", json_of(std::vector<Index>{model.input.height, model.input.width})},
          {"resize_size", fmt::format("{}", std::max(data.short_side, side))},
          {data_digests, fmt::format("{:016x} {:016x}", data.train_digest, data.val_digest)},
          {"weights", model.weights},
          {"epoch", fmt::format("{}", meta.position.epoch)},
          {"step", fmt::format("{}", meta.position.step)},
          {"run", meta.run},
          {"configuration_hash", meta.configuration_hash},
          {"network_digest", fmt::format("{:016x}", model.plan.digest)}};
}

std::string onnx_text(const ExportConfig& config, const SavedModel& saved, const HostModel& model, Metadata metadata) {
  const std::map<std::string, Range> places = places_of(model);
  OnnxSpec spec{.graph = model.plan.graph,
                .height = model.input.height,
                .width = model.input.width,
                .values = [&](const std::string& name) { return part_of(model, places.at(name)); }};
  metadata["input"] = "normalized";
  if (config.normalises) {
    const Normalise normalise = saved.config.data.normalise;
    if (normalise != Normalise::channel)
      fail(Exit::usage,
           "'{}' was trained with --normalise {}, which --with-normalization can't put into a graph; leave it out",
           saved.path, normalise == Normalise::per_image ? "per-image" : "mean-image");
    spec.mean = saved.file.meta.data.mean;
    spec.deviation = saved.file.meta.data.std;
    metadata["input"] = "pixels from 0 to 255";
  }
  spec.metadata = std::move(metadata);
  return onnx_model(spec);
}

/// The meta text of a checkpoint that holds these weights alone.
std::string checkpoint_text(const SavedModel& saved) {
  FileMeta file = saved.file;
  file.meta.ema_decay = 0;
  file.meta.has_outer = false;
  file.meta.compression = {};
  file.shards.clear();
  return to_text(file);
}

/// A state dict holds no epsilon, so that another program puts the weights into a network with its own.
void warn_of_epsilon(const SavedModel& saved) {
  const GraphSpec& model = saved.config.model;
  const float own = norms_of(model).epsilon, usual = usual_norms(model.model).epsilon;
  if (!model.layers.empty() || own == usual) return;
  log::warn(
      "the batch norms of '{}' learned with an epsilon of {}, and those of other programs' {} have {}, which the file "
      "can't change; set eps there, or export ONNX, which holds it",
      saved.path, own, model.model, usual);
}

void write(const ExportConfig& config, const SavedModel& saved, const HostModel& model) {
  Metadata metadata = describe(saved, model);
  if (config.format == WeightFormat::onnx) {
    publish_text(config.output, onnx_text(config, saved, model, std::move(metadata)));
    return;
  }
  warn_of_epsilon(saved);
  metadata[convoy_metadata] = checkpoint_text(saved);
  const std::vector<NamedTensor> tensors =
      state_dict_values(model.plan, part_of(model, model.layout.values), part_of(model, model.layout.statistics),
                        saved.file.meta.position.step);
  metadata[digest_metadata] = digest_of_contents(tensors, metadata);
  const auto write_tensors = config.format == WeightFormat::pth ? write_pth : write_safetensors;
  write_tensors(config.output, tensors, metadata);
}

}  // namespace

std::string export_model(const ExportConfig& config) {
  const SavedModel saved = find_model(config.checkpoint);
  require_free(config.output, config.overwrite ? Existing::is_replaced : Existing::stays, {saved.path});
  const HostModel model = read_model(saved, config.choice, config.image_size);
  write(config, saved, model);
  return fmt::format("{}: {}{} of '{}' ({} weights), {} parameters, {:.1f} MB", config.output, model.plan.graph.model,
                     mark_of(saved, model), saved.path, model.weights,
                     cost_of(model.plan.graph, model.input.height, model.input.width).parameters,
                     static_cast<double>(std::filesystem::file_size(config.output)) / 1e6);
}

}  // namespace convoy
