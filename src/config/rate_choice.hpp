// SPDX-License-Identifier: Apache-2.0
// The learning rate of a run that names none, and its warm-up: docs/adr/0026-a-rate-for-the-batch.md.
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Fills what the words leave open: without --lr, the optimiser's usual rate, scaled by the batch if it is one for 256
/// images, and a warm-up of a tenth of the run, 5 epochs at most. A rate that is said is left as it is.
void choose_rate(TrainConfig& config);
/// The same of a run that goes on: what it was trained with counts. `stored`: its configuration.
void keep_rate(TrainConfig& config, const TrainConfig& stored);
/// One line on what choose_rate did; empty: nothing.
std::string explain_rate(const TrainConfig& config);

}  // namespace convoy
