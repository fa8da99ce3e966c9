// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace convoy::preparation {

/// All bytes of a file; a gzip file unpacked. Throws Error(data): missing, truncated, damaged.
std::vector<std::uint8_t> read_whole(const std::string& path);

/// Goes through a .tar, .tar.gz or .tgz once, to its end (so that gzip's checksum is checked), and gives the bytes of
/// every regular file whose name without folders `wanted` accepts to `take`. Throws Error(data): missing, truncated,
/// damaged.
void read_archive(const std::string& path, const std::function<bool(const std::string& name)>& wanted,
                  const std::function<void(const std::string& name, std::vector<std::uint8_t> bytes)>& take);

}  // namespace convoy::preparation
