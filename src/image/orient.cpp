// SPDX-License-Identifier: Apache-2.0
#include "image/orient.hpp"

#include <algorithm>
#include <cstddef>

namespace convoy {
namespace {

/// What makes an upright image of a stored one: first the sides are swapped (so rows come from columns), then rows and
/// columns are mirrored.
struct Turn {
  bool swap = false, mirror_rows = false, mirror_columns = false;
};

Turn turn_of(std::uint8_t orientation) {
  switch (orientation) {
    case 2:
      return {false, false, true};
    case 3:
      return {false, true, true};
    case 4:
      return {false, true, false};
    case 5:
      return {true, false, false};
    case 6:
      return {true, false, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, true, false};
    default:
      return {};
  }
}

}  // namespace

Region stored_region(const Region& upright, std::uint8_t orientation, Index stored_height, Index stored_width) {
  const Turn turn = turn_of(orientation);
  const Index height = turn.swap ? stored_width : stored_height, width = turn.swap ? stored_height : stored_width;
  Region r = upright;
  if (turn.mirror_rows) r.y = height - r.y - r.height;
  if (turn.mirror_columns) r.x = width - r.x - r.width;
  if (turn.swap) r = {r.x, r.y, r.width, r.height};
  return r;
}

void make_upright(const Image& stored, std::uint8_t orientation, Image& upright) {
  const Turn turn = turn_of(orientation);
  const Index channels = stored.channels;
  if (turn.swap) {
    upright.reshape(stored.width, stored.height, channels);
  } else {
    upright.reshape(stored.height, stored.width, channels);
  }
  for (Index y = 0; y < upright.height; ++y) {
    std::uint8_t* to = upright.row(y);
    const Index from_y = turn.mirror_rows ? upright.height - 1 - y : y;
    for (Index x = 0; x < upright.width; ++x, to += channels) {
      const Index from_x = turn.mirror_columns ? upright.width - 1 - x : x;
      const std::uint8_t* from =
          turn.swap ? stored.row(from_x) + from_y * channels : stored.row(from_y) + from_x * channels;
      std::copy_n(from, channels, to);
    }
  }
}

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
