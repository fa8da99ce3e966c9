// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Of all that decides the bits of the trained model, 16 hex digits. Left out: output, checkpoints, how far this job
/// runs, and the number of replicas, which a checkpoint holds beside it and which ranks and --grad-accum-steps may make
/// up in two ways.
std::string configuration_hash(const TrainConfig& config);

}  // namespace convoy
