// SPDX-License-Identifier: Apache-2.0
// What rank 0 has read of a data set, on all ranks: a thousand of them read no more of its files than one.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "data/dataset.hpp"
#include "data/shapes.hpp"

namespace convoy {

/// Collective. Each takes what rank 0 holds.
void share(Communicator& communicator, DatasetInfo& info);
/// Collective.
void share(Communicator& communicator, std::vector<ShapeGroup>& groups);
/// Collective.
void share(Communicator& communicator, std::vector<std::int32_t>& labels);

/// Collective. open_split by rank 0 for all, or by each of what is made in memory. Throws AgreedError.
DatasetInfo open_shared_split(Communicator& communicator, const DataConfig& config, const std::string& split);

}  // namespace convoy
