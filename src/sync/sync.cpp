// SPDX-License-Identifier: Apache-2.0
#include "sync/sync.hpp"

#include "sync/modes.hpp"

namespace convoy {

std::unique_ptr<Sync> make_sync(const SyncSpec& spec, Backend& backend, Collectives& collectives, const Plan& plan,
                                const OptimiserSpec& optimiser, Updater& updater, float* gradients) {
  if (spec.local_steps < 1) fail(Exit::usage, "--local-steps {} is not possible (1 is the least)", spec.local_steps);
  if (plan.sync_bn && (spec.mode != SyncMode::gradients || spec.replicas > spec.ranks))
    fail(Exit::usage,
         "--sync-bn needs --sync gradients and at most one replica a rank (this job has {} replicas on {} ranks); "
         "change "
         "--sync, --replicas or --grad-accum-steps",
         spec.replicas, spec.ranks);
  const SyncParts parts{spec, backend, collectives, plan, backend.layout(plan, optimiser), updater, gradients};
  return spec.mode == SyncMode::gradients ? make_gradient_sync(parts) : make_weight_sync(parts);
}

}  // namespace convoy
