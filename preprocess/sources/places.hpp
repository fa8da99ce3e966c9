// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/split_source.hpp"

namespace convoy::preparation {

/// Finds the splits of --source (one place), or of --train and --val. Throws Error(usage) where they make no sense
/// together.
std::vector<SplitSource> find_places(const PrepareSpec& spec);

}  // namespace convoy::preparation
