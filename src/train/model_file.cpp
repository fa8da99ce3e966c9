// SPDX-License-Identifier: Apache-2.0
#include "train/model_file.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "config/option.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "train/leave.hpp"

namespace convoy {

std::string best_checkpoint(const std::string& path) {
  for (const std::string& best : {path + "/checkpoints/best.h5", path + "/best.h5"}) {
    std::error_code unknown;
    if (std::filesystem::exists(best, unknown)) return best;
  }
  return resolve_checkpoint(path);
}

ModelFile open_model(Communicator& communicator, const std::string& path) {
  ModelFile model;
  model.found = open_checkpoint(communicator, path, best_checkpoint);
  const CheckpointMeta& meta = model.found.file.meta;
  const TrainConfig run = parse_ini(meta.texts.at("configuration"), model.found.path);
  const Position& at = meta.position;
  const Index epoch = at.data_epoch();
  for (auto& [begin, config] : data_phases(run)) {
    if (begin <= epoch) model.config = config;
  }
  return model;
}

ParameterSet load_weights(Communicator& communicator, const ModelFile& model, Engine& engine,
                          Collectives& collectives) {
  const ParameterSet set{engine.backend().allocate(engine.layout().count()), engine.layout().count()};
  Checkpoint loaded;
  alike(communicator, [&] {
    loaded = load_checkpoint(communicator, model.found, engine.plan(), engine.layout(),
                             {.weights_only = true, .shards = false});
  });
  if (loaded.meta.ema_decay > 0)
    log::info("'{}' is taken as the moving average of its weights (--ema-decay {})", loaded.path,
              loaded.meta.ema_decay);
  set_up(communicator, "loading the weights", [&] { engine.upload(set, loaded.set.block, collectives); });
  return set;
}

std::map<std::string, std::string> tell_data(const DatasetInfo& info) {
  std::string names;
  for (const std::string& name : info.class_names) names += (names.empty() ? "" : "\n") + name;
  return {{"class_names", names},
          {"data_mean", print_list(info.mean)},
          {"data_std", print_list(info.std)},
          {"data_size", print_list(std::vector<Index>{info.height, info.width})}};
}

DatasetInfo data_of_model(const ModelFile& model) {
  const auto text = [&](const char* name) {
    const auto found = model.found.file.meta.texts.find(name);
    if (found == model.found.file.meta.texts.end()) {
      fail(Exit::data,
           "checkpoint '{}' doesn't tell '{}' of its data (an older version wrote it); predict a prepared data set, or "
           "train a step more with --resume",
           model.found.path, name);
    }
    return found->second;
  };
  const auto numbers = [&](const char* name) {
    std::vector<double> values;
    for (const std::string& item : split_list(text(name))) values.push_back(read_number(item, {}));
    return values;
  };
  DatasetInfo info;
  info.folder = model.found.path;
  info.encoding = "jpeg";
  std::istringstream names(text("class_names"));
  for (std::string name; std::getline(names, name);) info.class_names.push_back(name);
  const auto classes = model.found.file.meta.numbers.find("classes");
  info.classes = classes != model.found.file.meta.numbers.end() ? static_cast<Index>(classes->second)
                                                                : static_cast<Index>(info.class_names.size());
  info.mean = numbers("data_mean");
  info.std = numbers("data_std");
  info.channels = static_cast<Index>(info.mean.size());
  const std::vector<double> size = numbers("data_size");
  if (size.size() != 2) fail(Exit::data, "checkpoint '{}': 'data_size' is not two numbers", model.found.path);
  info.height = static_cast<Index>(size[0]);
  info.width = static_cast<Index>(size[1]);
  return info;
}

}  // namespace convoy
