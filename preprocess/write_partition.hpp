// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "data/partition.hpp"

namespace convoy::preparation {

/// Writes a sample's bytes and returns its label: sample i of the partition.
using ReadSample = std::function<std::int32_t(Index i, std::uint8_t* image)>;

/// Writes a whole partition under `header.path`.tmp, seals it and publishes it under header.path: that name never holds
/// half a file. Streams samples, so memory stays small. Offsets and seal of the header are not read. Throws
/// Error(data); the temporary file is removed then.
void write_partition(const Partition& header, const ReadSample& read);

}  // namespace convoy::preparation
