// SPDX-License-Identifier: Apache-2.0
// What rank 0 has read of a data set's headers, for the other ranks of its job: bytes of this build, for no file.
#pragma once
#include <string>
#include <string_view>

#include "data/dataset.hpp"

namespace convoy {

std::string to_bytes(const DatasetInfo& info);
/// Of to_bytes. Throws Error(internal) if the bytes end early or go on.
DatasetInfo dataset_info_of(std::string_view bytes);

}  // namespace convoy
