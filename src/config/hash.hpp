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

/// How `now` differs from `then`, a text of to_ini. Empty if nothing differs, or if `then` can't be read.
/// A text for each of data, input, model, optimiser and phases: `optimiser changed: lr 0.1 then, 0.2 now`.
std::vector<std::string> changed_parts(const std::string& then, const TrainConfig& now);
/// What changes rounding alone: `threads 1 then, 2 now`.
std::string rounding_options(const std::string& then, const TrainConfig& now);

}  // namespace convoy
