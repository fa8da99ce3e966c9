// SPDX-License-Identifier: Apache-2.0
// What rank 0 has read of a data set, for the other ranks of its job. The layout is that of this build: never
// write it to a file.
#pragma once
#include <string>
#include <string_view>

#include "data/dataset.hpp"
#include "data/shapes.hpp"

namespace convoy {

std::string to_bytes(const DatasetInfo& info);
/// Reads what to_bytes wrote. Throws Error(internal) if the bytes end early or go on.
DatasetInfo dataset_info_of(std::string_view bytes);

std::string to_bytes(const std::vector<ShapeGroup>& groups);
/// Reads what to_bytes wrote. Throws Error(internal) if the bytes end early or go on.
std::vector<ShapeGroup> shape_groups_of(std::string_view bytes);

}  // namespace convoy
