// SPDX-License-Identifier: Apache-2.0
// Changes of colour on 8-bit RGB pixels, in place. Brightness to equalise give the bytes that Pillow's ImageEnhance and
// ImageOps give, hence torchvision's on PIL images.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace convoy {

/// Borrowed pixels that may be written: h w 3, without gaps.
struct Canvas {
  std::uint8_t* pixels = nullptr;
  Index height = 0, width = 0;
  Index bytes() const { return height * width * 3; }
};

// Factor 0: black, the image's mean grey, its grey version, a smoothed version; 1: as it is; above 1: beyond.
void adjust_brightness(const Canvas& canvas, float factor);
void adjust_contrast(const Canvas& canvas, float factor);
void adjust_saturation(const Canvas& canvas, float factor);
void adjust_sharpness(const Canvas& canvas, float factor, std::vector<std::uint8_t>& scratch);
/// Turns the hue by `shift` of the whole circle, -0.5 to 0.5, through Pillow's 8-bit HSV.
void shift_hue(const Canvas& canvas, double shift);

/// Adds to hue (in units of 2 degrees), saturation and lightness (0 to 255) of HSL; hue wraps, the others are clipped.
void shift_hsl(const Canvas& canvas, float hue, float saturation, float lightness);
/// Adds to each channel, rounded to nearest.
void shift_channels(const Canvas& canvas, const std::array<float, 3>& by);
/// How the colours of a set of images vary: principal components of RGB, of pixels from 0 to 1.
struct ColourComponents {
  std::array<double, 3> eigenvalues;                ///< variance along each component
  std::array<std::array<double, 3>, 3> components;  ///< [channel][component], of length 1
};
/// ImageNet's (the values of fb.resnet.torch, used by all programs since).
inline constexpr ColourComponents imagenet_colours{
    {0.2175, 0.0188, 0.0045}, {{{-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}}}};
/// The colour noise of Krizhevsky et al. 2012, section 4.1: a sum of the principal components, each times its
/// eigenvalue (not the root of it) and `weights`; in grey levels per channel.
std::array<float, 3> lighting_shift(const ColourComponents& colours, const std::array<double, 3>& weights);

void posterize(const Canvas& canvas, int bits);
/// Inverts values from `threshold` on.
void solarize(const Canvas& canvas, double threshold);
void invert(const Canvas& canvas);
/// Per channel: stretches to the whole range.
void stretch_contrast(const Canvas& canvas);
/// Per channel: flattens the histogram.
void equalize(const Canvas& canvas);

}  // namespace convoy
