// SPDX-License-Identifier: Apache-2.0
#include "infer/model_file.hpp"

#include <algorithm>

#include "comm/agreed_error.hpp"
#include "config/parse.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"

namespace convoy {

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
  run_alike(communicator, [&] {
    loaded = load_checkpoint(communicator, model.found, engine.plan(), engine.layout(),
                             {.weights_only = true, .shards = false});
  });
  if (loaded.meta.ema_decay > 0)
    log::info("'{}' is taken as the moving average of its weights (--ema-decay {})", loaded.path,
              loaded.meta.ema_decay);
  run_agreed(communicator, "loading the weights", [&] { engine.upload(set, loaded.set.block, collectives); });
  return set;
}

}  // namespace convoy
