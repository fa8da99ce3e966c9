// SPDX-License-Identifier: Apache-2.0
// Affine changes of 8-bit RGB pixels: shear, rotate, translate, scale.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "image/colour.hpp"

namespace convoy {

/// Where an output pixel comes from: x = m[0] * x' + m[1] * y' + m[2], y = m[3] * x' + m[4] * y' + m[5], in pixels, the
/// centre of a pixel at half.
using AffineMatrix = std::array<double, 6>;

/// torchvision's parameters: rotated clockwise by `degrees`, scaled and sheared around the centre, then moved.
struct AffineSpec {
  double degrees = 0;
  double move_x = 0, move_y = 0;  ///< pixels
  double scale = 1;
  double shear_x = 0, shear_y = 0;  ///< degrees
  double centre_x = 0, centre_y = 0;
};
AffineMatrix inverse_affine(const AffineSpec& spec);

enum class Sampling : std::uint8_t { nearest, bilinear };

/// Transforms in place; what comes from outside of the image takes `fill`. The bytes of Pillow's Image.transform
/// (nearest; bilinear to rounding).
void transform(const Canvas& canvas, const AffineMatrix& matrix, Sampling sampling, std::uint8_t fill,
               std::vector<std::uint8_t>& scratch);

}  // namespace convoy
