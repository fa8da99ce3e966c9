// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/types.hpp"
#include "preprocess/sources/shard.hpp"

namespace convoy::preparation {

/// Throws Error(usage) where a split has fewer samples than partitions.
void require_enough_samples(Split split, Index samples, Index partitions);

}  // namespace convoy::preparation
