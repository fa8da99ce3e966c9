// SPDX-License-Identifier: Apache-2.0
// Learning rate and warm-up of a run without --lr: docs/adr/0026-a-rate-for-the-batch.md. Rate and momentum of outer
// steps without --outer-lr and --outer-momentum. What a resumed run keeps though it isn't given again.
#pragma once
#include <string>

#include "config/config.hpp"

namespace convoy {

/// Without --lr: sets the optimiser's usual rate, scaled by the batch if that rate is for 256 images, and a warm-up of
/// a tenth of the run, at most 5 epochs. Leaves a given rate as it is. Outer steps get what is usual for their rule.
void choose_rate(TrainConfig& config);
/// For a resumed run: takes from `stored`, its configuration, the values that were not given.
void keep_rate(TrainConfig& config, const TrainConfig& stored);
/// The same for momentum and epsilon of the batch norms, whose defaults were others in earlier versions.
void keep_norms(TrainConfig& config, const TrainConfig& stored);
/// Both, of its text, as a checkpoint has it. Returns false if another version wrote it, so that it can't be read.
bool keep_unsaid(TrainConfig& config, const std::string& stored);
/// One line about what choose_rate did; empty if it did nothing.
std::string explain_rate(const TrainConfig& config);

}  // namespace convoy
