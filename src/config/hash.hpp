// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace convoy {

/// Of all that decides the bits of the trained model, 16 hex digits. Left out: output, checkpoints, how far this job
/// runs, and the number of replicas, which a checkpoint holds beside it and which ranks and --grad-accum-steps may make
/// up in two ways.
std::string configuration_hash(const TrainConfig& config);

/// What two configurations with unlike hashes differ in: `lr 0.1 then, 0.2 now; seed 1 then, 2 now`. `then`: an INI as
/// to_ini writes it. Empty where it can't be told.
std::string differing_options(const std::string& then, const TrainConfig& now);
/// The same for people, without what changes rounding alone: `optimiser changed: lr 0.1 then, 0.2 now`, a text for each
/// of data, input, model and optimiser.
std::vector<std::string> changed_parts(const std::string& then, const TrainConfig& now);

}  // namespace convoy
