// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/split_source.hpp"
#include "preprocess/spill/spiller.hpp"

namespace convoy::preparation {

/// Collective. Reads what is left of all shards, dealt over the ranks, into runs in `folder`; rank 0 tells how far all
/// have come. Throws AgreedError where a rank failed or somebody asked to stop: what was read by then is kept.
void read_images(Communicator& comm, const PrepareSpec& spec, std::vector<OpenSplit>& splits,
                 const std::vector<Shard>& shards, const std::vector<PendingShard>& left, const std::string& folder,
                 std::atomic<bool>& cancel);

}  // namespace convoy::preparation
