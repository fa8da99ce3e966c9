// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "checkpoint/checkpoint.hpp"

namespace convoy {

struct TrainingJob;

/// Collective. What compressed gradients need: from a checkpoint that a job with the same replicas and compression
/// wrote, else residuals of 0 and first bases. Null: a fresh start. Throws AgreedError.
void load_residuals(TrainingJob& job, const Checkpoint* loaded);

}  // namespace convoy
