// SPDX-License-Identifier: Apache-2.0
// A trained model as evaluation and prediction find it.
#pragma once
#include <string>

#include "checkpoint/resume.hpp"
#include "config/config.hpp"
#include "core/errors.hpp"
#include "engine/engine.hpp"

namespace convoy {

struct ModelFile {
  FoundCheckpoint found;
  TrainConfig config;  ///< of the run that wrote it, as it was in the phase that it was written in

  NamedData data() const { return {found.file.meta.data, fmt::format("'{}'", found.path)}; }
};

/// Collective. `path`: a checkpoint, or the best (else the newest) one of a run directory. Throws Error(data), the same
/// on all ranks.
ModelFile open_model(Communicator& communicator, const std::string& path);

/// Collective. The model's weights and statistics on the engine's device. Throws Error(data), and AgreedError.
ParameterSet load_weights(Communicator& communicator, const ModelFile& model, Engine& engine, Collectives& collectives);

}  // namespace convoy
