// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// Opens a local file and unpacks it on the way if it is gzip data, whose checksum is compared at its end: libarchive
/// does not compare it. Throws Error(data): missing, truncated, damaged.
std::unique_ptr<ByteStream> open_gzip_file(const std::string& path);

}  // namespace convoy::preparation
