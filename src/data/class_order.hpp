// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/dataset.hpp"

namespace convoy {

/// True where the samples of a range stand in order of their classes, or nearly so: neighbours have the same label far
/// more often than in a random order of the same labels. False for fewer than 100 samples, which tell too little.
bool is_sorted_by_class(const Dataset& samples);

}  // namespace convoy
