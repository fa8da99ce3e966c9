// SPDX-License-Identifier: Apache-2.0
#include "image/exif.hpp"

#include <cstddef>

namespace convoy {
namespace {

constexpr std::uint32_t orientation_tag = 0x0112, byte_type = 1, short_type = 3, long_type = 4;

/// Numbers of a TIFF structure; past its end everything is 0.
struct Tiff {
  std::span<const std::uint8_t> bytes;
  bool big = false;

  std::uint32_t byte(std::size_t at) const { return at < bytes.size() ? bytes[at] : 0; }
  std::uint32_t two(std::size_t at) const { return big ? byte(at) << 8 | byte(at + 1) : byte(at + 1) << 8 | byte(at); }
  std::uint32_t four(std::size_t at) const { return big ? two(at) << 16 | two(at + 2) : two(at + 2) << 16 | two(at); }
};

}  // namespace

std::uint8_t find_orientation(std::span<const std::uint8_t> bytes) {
  Tiff tiff{bytes};
  if (tiff.byte(0) != tiff.byte(1) || (tiff.byte(0) != 'I' && tiff.byte(0) != 'M')) return 1;
  tiff.big = tiff.byte(0) == 'M';
  if (tiff.two(2) != 42) return 1;
  const std::size_t directory = tiff.four(4), entries = tiff.two(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > bytes.size()) break;
    if (tiff.two(entry) != orientation_tag) continue;
    const std::uint32_t type = tiff.two(entry + 2);  // the standard wants a short; cameras and tools write others, too
    if (type != byte_type && type != short_type && type != long_type) continue;
    const std::uint32_t value = type == byte_type    ? tiff.byte(entry + 8)
                                : type == short_type ? tiff.two(entry + 8)
                                                     : tiff.four(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<std::uint8_t>(value) : std::uint8_t{1};
  }
  return 1;
}

}  // namespace convoy
