// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "train/observer.hpp"

namespace convoy {

struct TrainingJob;

/// Collective. Trains until the job's state ends: data, network and backend, sync, optimiser, then observers.
void run_loop(TrainingJob& job, const Observers& observers);

}  // namespace convoy
