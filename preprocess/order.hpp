// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "preprocess/source.hpp"

namespace convoy::preparation {

/// The global shuffle: sample numbers of the source in the order of hash(seed, name), ties by name. A sample's place in
/// it is its id. Depends on the names alone, not on the order in which a source lists its samples, nor on ranks.
std::vector<Index> shuffle_by_name(const Source& source, Split split, std::uint64_t seed);

/// Part `number` of `samples` cut into `partitions` parts whose sizes differ by at most one.
Range cut_evenly(Index samples, Index partitions, Index number);

}  // namespace convoy::preparation
