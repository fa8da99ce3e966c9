// SPDX-License-Identifier: Apache-2.0
#include "network/operations/input_shape.hpp"

#include <fmt/core.h>

namespace convoy {

std::string input_shape_text(const NodeInputs& inputs, const Shape& shape) {
  const Shape& image = inputs.image;
  const auto is_part = [](Index side, Index whole) { return side == 1 || (side > 0 && whole % side == 0); };
  if (!is_part(shape.h, image.h) || !is_part(shape.w, image.w))
    return fmt::format("{} x {} x {} (of images of {} x {})", shape.c, shape.h, shape.w, image.h, image.w);
  const auto part = [](Index side, Index whole, const char* letter) -> std::string {
    if (side == whole) return letter;
    return side == 1 ? "1" : fmt::format("{}/{}", letter, whole / side);
  };
  return fmt::format("{} x {} x {}", shape.c, part(shape.h, image.h, "h"), part(shape.w, image.w, "w"));
}

}  // namespace convoy
