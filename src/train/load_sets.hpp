// SPDX-License-Identifier: Apache-2.0
// What the sets of a job and the state beside them begin with, or go on with. All of it throws AgreedError.
#pragma once
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace convoy {

struct TrainingJob;

/// Collective. All sets of this rank's replicas begin with the values of `block`.
void load_sets(TrainingJob& job, const std::vector<float>& block);
/// Collective. The moving average starts from the weights in `block`; does nothing if the average is off.
void load_average(TrainingJob& job, const std::vector<float>& block);
/// Collective. The moving average continues, or starts from the weights.
void resume_average(TrainingJob& job, const Checkpoint& loaded);
/// Collective. Does nothing without an outer optimiser. `outer`: its state in the checkpoint; if empty, it starts at
/// the values of `block` with zero momentum.
void load_outer(TrainingJob& job, const std::vector<float>& block, const HostSet& outer = {});
/// Collective. After load_sets: each replica goes on with its shard, if it has one.
void load_replicas(TrainingJob& job, const std::vector<Shard>& shards);

}  // namespace convoy
