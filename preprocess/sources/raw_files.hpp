// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace convoy::preparation {

/// One raw file in memory under its official name.
struct RawFile {
  std::string name, path;  ///< path: for messages; of an archive: ARCHIVE:NAME
  std::vector<std::uint8_t> bytes;
};

/// The official files of a data set and where they may be.
struct RawLayout {
  std::vector<std::string> required, optional;
  std::vector<std::string> folders;   ///< official inner folders: `cifar-10-batches-bin`
  std::vector<std::string> archives;  ///< official archive names, looked for inside a --source folder
};

/// Reads a folder (or its official inner folder, or an official archive in it) or an archive itself. Keyed by
/// official name; a missing optional file has no entry. A file `NAME` may also lie there as `NAME.gz`, and
/// `a-idx3-ubyte` as `a.idx3-ubyte`. Throws Error(data) naming the first missing file and where it was looked for.
std::map<std::string, RawFile> read_raw_files(const std::string& source, const RawLayout& layout);

/// `crc32c-1a2b3c4d` over names, sizes and bytes, in the order of names.
std::string digest_of(const std::map<std::string, RawFile>& files);

}  // namespace convoy::preparation
