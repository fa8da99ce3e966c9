// SPDX-License-Identifier: Apache-2.0
// What a run that continues no checkpoint begins with.
#pragma once

namespace convoy {

struct TrainingJob;

/// Collective. Puts first weights into all sets, and the state beside them: those of the initialiser and of whitening
/// layers, or of --weights. Throws AgreedError, or Error the same on all ranks.
void load_first_weights(TrainingJob& job);

}  // namespace convoy
