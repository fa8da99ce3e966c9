// SPDX-License-Identifier: Apache-2.0
// A trained model as evaluation and prediction find it.
#pragma once
#include <map>
#include <string>

#include "checkpoint/resume.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "train/engine.hpp"

namespace convoy {

struct ModelFile {
  FoundCheckpoint found;
  TrainConfig config;  ///< of the run that wrote it, as it was in the phase that it was written in
};

/// The file that a user means by a trained model: a checkpoint, or the best (else the newest) one of a run directory or
/// its checkpoints folder. Throws Error(data).
std::string best_checkpoint(const std::string& path);

/// Collective. `path`: a checkpoint, or the best (else the newest) one of a run directory. Throws Error(data), the same
/// on all ranks.
ModelFile open_model(Communicator& communicator, const std::string& path);

/// Collective. The model's weights and statistics on the engine's device. Throws Error(data), and Leave.
ParameterSet load_weights(Communicator& communicator, const ModelFile& model, Engine& engine, Collectives& collectives);

/// What a checkpoint tells of the data that its network learned from, as texts: names of classes, channels, mean and
/// standard deviation, stored size.
std::map<std::string, std::string> tell_data(const DatasetInfo& info);

/// The same read back, with encoding `jpeg`: for images that come as files. height and width are the stored size of
/// pixels, 0 where the network learned from files. Throws Error(data) where the checkpoint tells none of that.
DatasetInfo data_of_model(const ModelFile& model);

}  // namespace convoy
