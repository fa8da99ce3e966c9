// SPDX-License-Identifier: Apache-2.0
// Sealed files whose bytes are in memory too: written without reading them back for the seal, and compared once. The
// definitions are in seal.cpp, which knows the seal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace convoy {

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
