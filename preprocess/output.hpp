// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/partition.hpp"

namespace convoy::preparation {

/// What is wrong inside a partition whose header is fine: damaged samples, labels out of range, ids that are not its
/// own. Empty: nothing. At most `limit` lines, then how many more.
std::vector<std::string> find_faults(const Partition& partition, std::size_t limit);

/// Makes the folder; refuses, or with `overwrite` removes, partitions of other series; removes temporary files left
/// behind by a killed run. Throws Error(usage) naming a file in the way, Error(data) where the folder can't be made.
void prepare_folder(const std::string& folder, const std::vector<std::string>& expected_names, bool overwrite);

/// older: complete, but an earlier version made it, without the covariance of its colours.
enum class Existing : std::uint8_t { none, complete, older, damaged, other };
/// Is `wanted` there already? other: an intact file of another source or with other parameters.
Existing look_for(const Partition& wanted);
/// Whether an earlier version made it: it lacks the covariance of its colours.
bool is_older(const Partition& stored);
/// Do the partitions of an earlier version stay, of which there are `older` among `all`? A set that lacks nothing else
/// stays as it is, unless the user asks for what this version stores. Mixed with new ones they don't: all partitions of
/// a set have the same covariance.
bool keeps_older(Index older, Index all, bool overwrite);

}  // namespace convoy::preparation
