// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "sync/sync.hpp"

namespace convoy {

/// What both modes are made of; all of it outlives the Sync.
struct SyncParts {
  SyncSpec spec;
  Backend& backend;
  Collectives& collectives;
  const Plan& plan;
  SetLayout layout;
  Updater& updater;
  float* gradients;
};

/// Collective.
std::unique_ptr<Sync> make_gradient_sync(const SyncParts& parts);
/// Collective.
std::unique_ptr<Sync> make_weight_sync(const SyncParts& parts);

}  // namespace convoy
