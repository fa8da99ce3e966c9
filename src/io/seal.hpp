// SPDX-License-Identifier: Apache-2.0
// A seal makes any flipped byte of a file show: HDF5's own format accepts most of them in silence. It lies in the HDF5
// user block (first 512 bytes), written after H5Fclose, and is checked before H5Fopen. docs/format.md has the layout.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace convoy {

constexpr std::size_t seal_bytes = 512;  ///< size of the user block to reserve (H5Pset_userblock)

struct Seal {
  std::uint64_t file_bytes = 0;
  std::uint64_t samples_offset = 0, samples_bytes = 0;  ///< bytes with checksums of their own (0: none)
  std::uint32_t crc = 0;                                ///< over every other byte, the user block's own included
};

/// CRC32C (Castagnoli), isa-l. crc32c(b, crc32c(a)) = crc of a then b; start with 0.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t crc = 0);

/// Writes the seal of a closed file: CRC over every byte but the samples, the user block's own included. fsyncs. `tag`
/// is a number of the file's kind that peek_tag finds again; 0: none.
void seal_file(const std::string& path, std::uint64_t samples_offset = 0, std::uint64_t samples_bytes = 0,
               std::uint64_t tag = 0);

/// The tag by the first bytes alone, which have a CRC of their own: cheap, and no proof that the rest is whole. Throws
/// Error(data) as check_seal, also where there is no tag.
std::uint64_t peek_tag(const std::string& path);

/// Throws Error(data) naming the file and what is wrong: missing, empty, shorter or longer than sealed, not sealed,
/// damaged.
Seal check_seal(const std::string& path);

/// fsync of file and folder around rename: after it `path` is the complete new file, or still the old one.
void publish_file(const std::string& temporary, const std::string& path);
/// A whole file made of `text` and published. What it is written under, `path`.tmp, is gone also where this throws.
void publish_text(const std::string& path, std::string_view text);

// Sealed files whose bytes are in memory too: written without reading them back for the seal, and compared once. The
// definitions are in seal.cpp, which knows the seal.

/// Bytes of a file that are in memory too.
struct KnownBytes {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};
/// Writes these bytes, sorted by offset and within the length of the closed file, and seals it as seal_file does,
/// without reading them back. fsyncs.
void write_and_seal(const std::string& path, std::span<const KnownBytes> known, std::uint64_t tag);
/// check_seal of such a file, and its bytes compared with those in memory, in one reading: from the disk where no page
/// of it is cached. Throws Error(data).
void check_written(const std::string& path, std::span<const KnownBytes> known);

}  // namespace convoy
