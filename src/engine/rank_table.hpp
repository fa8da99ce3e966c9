// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "engine/placement.hpp"

namespace convoy {

/// Returns a table of the ranks. With many ranks, equal hosts share a row, and so do equal ranks that follow each
/// other.
std::string table_of(const JobPlacement& placement);

}  // namespace convoy
