// SPDX-License-Identifier: Apache-2.0
#include "image/orient.hpp"

#include <algorithm>

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

}  // namespace convoy
