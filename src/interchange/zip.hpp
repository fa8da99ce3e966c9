// SPDX-License-Identifier: Apache-2.0
// Zip archives whose entries are stored, not compressed: what PyTorch saves. An entry is a range of the file.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/file.hpp"

namespace convoy {

struct ZipEntry {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;  ///< of the data in the file
  std::uint32_t crc = 0;                ///< CRC-32 of the data
  bool plain = true;                    ///< neither compressed nor encrypted
};

/// zip's CRC-32. zip_crc(b, zip_crc(a)) is that of a followed by b.
std::uint32_t zip_crc(std::span<const std::byte> data, std::uint32_t crc = 0);

/// Entries in the order of the archive's directory; each lies wholly in the file. Throws Error(data) if this is not a
/// whole archive below 4 GB.
std::vector<ZipEntry> read_zip(const File& file);

/// Writes an archive entry by entry; every entry's data begin at a multiple of 64 bytes. Throws Error(data).
class ZipWriter {
 public:
  explicit ZipWriter(File& file) : file_(file) {}
  void add(const std::string& name, std::span<const std::byte> data);
  void finish();

 private:
  void write(const std::string& bytes);

  File& file_;
  std::uint64_t at_ = 0;
  std::string directory_;
  std::size_t entries_ = 0;
};

}  // namespace convoy
