// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "sync/sync.hpp"

namespace convoy {

/// True if every rank keeps the weights after the last average.
bool needs_anchor(const SyncSpec& spec);

/// Values that train and statistics that move.
void copy_model(const SyncParts& parts, const ParameterSet& from, const ParameterSet& to);

// As sum_floats().
Index gradient_sum_floats(const SyncSpec& spec, const ParameterTable& table);
Index weight_sum_floats(const SyncSpec& spec, const SetLayout& layout);

/// Collective.
std::unique_ptr<Sync> make_gradient_sync(const SyncSpec& spec, const SyncParts& parts);
/// Collective.
std::unique_ptr<Sync> make_weight_sync(const SyncSpec& spec, const SyncParts& parts);

}  // namespace convoy
