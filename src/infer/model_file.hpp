// SPDX-License-Identifier: Apache-2.0
// A trained model as evaluation and prediction find it.
#pragma once
#include <string>

#include "config/config.hpp"
#include "core/errors.hpp"
#include "engine/engine.hpp"
#include "engine/weights.hpp"

namespace convoy {

struct ModelFile {
  FoundWeights found;
  WeightChoice choice = WeightChoice::usual;  ///< of a checkpoint that has a moving average
  TrainConfig config;  ///< of the run that wrote it, as it was in the phase that it was written in
  // Of a file of tensors that doesn't name its classes; else 0.
  Index classes = 0, channels = 0;

  NamedData data() const { return {found.file.meta.data, fmt::format("'{}'", found.path)}; }
};

/// Collective. `path`: a checkpoint, the best (else the newest) one of a run directory, or a file of tensors. If that
/// doesn't name its network, the network is `network`, or (if that names none) the only one that fits, and images are
/// normalised as for torchvision's networks. Throws Error(data), and Error(usage) if the file contradicts `network` or
/// has only one kind of weights where one of two is asked for, the same on all ranks.
ModelFile open_model(Communicator& communicator, const std::string& path, const GraphSpec& network,
                     WeightChoice choice = WeightChoice::usual);

/// Whether the file says nothing of how images become its input, so that the published networks' way is taken.
bool assumes_input(const ModelFile& model);
/// What it takes then, for the log.
std::string tell_assumed_normalisation(const ModelFile& model);

/// Throws Error(data) if the set's images have other channels than the network of a file of tensors takes.
void require_channels(const ModelFile& model, const DatasetInfo& info);

/// --image-size for images of this set. If the model doesn't say it and the set has files of any size: the network's
/// usual one.
Index input_side(const ModelFile& model, const DataConfig& data, const DatasetInfo& info);

/// Collective. The model's weights and statistics on the engine's device. Throws Error(data), and AgreedError.
ParameterSet load_model(Communicator& communicator, const ModelFile& model, Engine& engine, Collectives& collectives);

}  // namespace convoy
