// SPDX-License-Identifier: Apache-2.0
#include "infer/host_model.hpp"

#include <span>

#include "backend/set_layout.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "engine/data.hpp"
#include "engine/model_data.hpp"
#include "engine/weights.hpp"

namespace convoy {

namespace {

/// A linear layer that takes all pixels has weights for one image size. `network`: of the size it was trained with.
void require_any_size(GraphSpec network, Index image_size) {
  const Index trained = network.image_size;
  const Index count = make_plan(build_graph(network), {}).table.parameters.count;
  network.image_size = image_size;
  if (make_plan(build_graph(network), {}).table.parameters.count != count)
    fail(
        Exit::usage,
        "--image-size {} doesn't go with the weights of {}, whose linear layers were trained with {} x {} pixels; leave "
        "it out",
        image_size, network.model, trained, trained);
}

}  // namespace

TrainConfig config_of(const CheckpointMeta& meta, const std::string& path) {
  const auto text = meta.texts.find("configuration");
  if (text == meta.texts.end())
    fail(Exit::data, "'{}' holds no configuration of its run (another program wrote it?); give a checkpoint of Convoy",
         path);
  TrainConfig latest;
  for (const auto& [begin, config] : data_phases(parse_ini(text->second, path)))
    if (begin <= meta.position.data_epoch()) latest = config;
  return latest;
}

SavedModel find_model(const std::string& path) {
  SavedModel saved{.path = best_checkpoint(path)};
  saved.file = read_main_meta(saved.path);
  saved.config = config_of(saved.file.meta, saved.path);
  // Older versions tell it in the configuration alone.
  saved.file.meta.data.normalise = saved.config.data.normalise;
  return saved;
}

HostModel read_model(const SavedModel& saved, WeightChoice choice, Index image_size) {
  const CheckpointMeta& meta = saved.file.meta;
  require_choice(saved.path, meta, choice);
  const TrainedData& learned = meta.data;
  const DatasetInfo info = data_of_model({learned, fmt::format("'{}'", saved.path)});
  GraphSpec network = graph_spec(saved.config.model, validation_data(saved.config.data), info);
  // Older versions tell the size of stored pixels only, which is the input's unless --image-size said another.
  HostModel model{.input = {network.image_size, network.image_size}};
  if (learned.short_side > 0) {
    model.input = {learned.input_height, learned.input_width};
  } else if (saved.config.data.image_size == 0 && learned.height > 0) {
    model.input = {learned.height, learned.width};
  }
  network.image_size = model.input.height;
  if (image_size > 0) {
    require_any_size(network, image_size);
    model.input = {image_size, image_size};
    network.image_size = image_size;
  }
  model.plan = make_plan(build_graph(network), {});
  model.layout = set_layout(model.plan.table, std::span<const char* const>());
  const Content content = choice == WeightChoice::trained ? Content::trained_weights : Content::weights;
  model.set = read_set_file(saved.path, model.plan, model.layout, content).set;
  model.weights = name_of_weights(meta, choice);
  return model;
}

}  // namespace convoy
