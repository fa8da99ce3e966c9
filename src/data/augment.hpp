// SPDX-License-Identifier: Apache-2.0
// What is done to a sample's image before the network sees it, and the draws that decide it. Two places do it: the
// backend's input stage (windows of stored pixels, flips, erased boxes, mixing: SampleSpec), and, where pixels must be
// decoded, resized or changed, the loader's threads (ImageMaker), whose images the input stage takes whole.
#pragma once
#include <string>

#include "backend/backend.hpp"
#include "core/types.hpp"
#include "data/policy.hpp"
#include "image/colour.hpp"
#include "image/image.hpp"

namespace convoy {

enum class Flip : std::uint8_t { none, random, alternating };

/// window: as large as the network's input, anywhere in the padded image as it is stored. automatic: the same after
/// resizing (AugmentSpec::short_side). resized: of random area and aspect ratio, resized to the input (Szegedy et al.
/// 2014; torchvision's RandomResizedCrop).
enum class Crop : std::uint8_t { automatic, window, resized };

/// Whether stored images are pixels of one size or JPEG files of any size.
enum class Stored : std::uint8_t { pixels, files };

/// Whose colours PCA noise follows.
enum class ColourSource : std::uint8_t { imagenet, data };

/// Ranges of random changes of colour; 0: none. Needs 3 channels.
struct ColourSpec {
  float brightness = 0, contrast = 0, saturation = 0;        ///< factors 1 - v to 1 + v, not below 0, in random order
  float hue = 0;                                             ///< share of the circle, up to 0.5
  float hsl_hue = 0, hsl_saturation = 0, hsl_lightness = 0;  ///< units of 2 degrees, 0 to 255, 0 to 255
  float lighting = 0;                                        ///< deviation of the weights of PCA noise
  ColourSource source = ColourSource::imagenet;
  ColourComponents components = imagenet_colours;  ///< by `source`: filled where the data are known
  bool any() const { return jitters() || shifts_hsl() || lighting > 0; }
  bool jitters() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  bool shifts_hsl() const { return hsl_hue > 0 || hsl_saturation > 0 || hsl_lightness > 0; }
};

/// Ranges of a random affine change around the centre, bilinear.
struct GeometrySpec {
  float rotate = 0;  ///< degrees either way
  float shear = 0;   ///< tangent either way
  float min_scale = 1, max_scale = 1;
  bool any() const { return rotate > 0 || shear > 0 || min_scale != 1 || max_scale != 1; }
};

/// Zhong et al. 2017 (arXiv 1708.04896): with a probability, a box of random area and aspect ratio is set to 0.
struct ErasingSpec {
  float probability = 0;
  float min_area = 0.02F, max_area = 1 / 3.0F;  ///< share of the image
  float max_aspect = 3.3F;                      ///< aspect ratios 1 / v to v
};

/// Zhang et al. 2017 (mix-up, arXiv 1710.09412), Yun et al. 2019 (cut-mix, arXiv 1905.04899); 0: off. Where both are on
/// each sample takes one of them at random.
struct MixingSpec {
  float mixup = 0, cutmix = 0;  ///< parameter alpha of the Beta distribution of lambda
  float probability = 1;        ///< of a sample to be mixed at all
  bool any() const { return mixup > 0 || cutmix > 0; }
};

struct AugmentSpec {
  Stored stored = Stored::pixels;
  Index source_height = 0, source_width = 0;  ///< stored size; files: 0
  Index channels = 3;
  Index height = 0, width = 0;  ///< network input
  bool train = true;            ///< false: centre crop (torchvision's rounding), nothing random
  Crop crop = Crop::automatic;  ///< training
  double min_area = 0.08, max_area = 1, min_aspect = 3 / 4.0, max_aspect = 4 / 3.0;  ///< resized crops
  Index resize = 0;  ///< short side before a window or centre crop; 0: see short_side()
  Index pad = 0;     ///< on every side, then a random window
  Padding padding = Padding::constant;
  Flip flip = Flip::none;
  double vertical_flip = 0;  ///< probability of a mirror image, top to bottom
  Index cutout = 0;          ///< side of the square erased at a random centre; 0: none
  ColourSpec colour;
  GeometrySpec geometry;
  PolicySpec policy;
  ErasingSpec erasing;
  MixingSpec mixing;
  std::uint8_t fill = 0;         ///< value of padding and of what turns into view
  bool scaled_decoding = false;  ///< training: JPEG files shrunk by 2, 4, 8 while decoding where that is large enough
  std::uint64_t seed = 0;

  /// Images are made by an ImageMaker, height x width; else the input stage takes windows of stored pixels.
  bool on_host() const;
  /// The short side of images before a window or centre crop; 0: that of stored pixels. Without `resize` it is 8/7 of
  /// the input; stored pixels keep theirs where it is the input's or a crop of windows asks for them, and shrink to the
  /// input's before padding.
  Index short_side() const;
};

/// `256x256 raw, resized to 32x32, padded 4, random crop, flip`
std::string describe(const AugmentSpec& spec);

/// Throws Error(usage) for a crop larger than the padded source, negative or huge sizes, ranges out of order. Call it
/// once, before augment().
void check_augment(const AugmentSpec& spec);

/// What the input stage does: f(seed, epoch, position in the epoch) for window, random flips, cutout and erasing;
/// the alternating flip is f(sample id, epoch). Fills y, x, flip, vertical_flip, erase_*; leaves sample, labels and
/// mixing alone.
void augment(const AugmentSpec& spec, Index epoch, Index position, Index sample_id, SampleSpec& to);

/// Mixes each sample with the one half a batch away (repeated augmentations of an image stand side by side): partner,
/// lambda, box and second label. Positions and labels are set already.
void mix_batch(const AugmentSpec& spec, Index epoch, std::span<SampleSpec> batch);

/// The part of an image that a resized crop shows: torchvision's RandomResizedCrop, ten tries, then the largest centred
/// part within the aspect ratios.
Region random_region(const AugmentSpec& spec, Index epoch, Index position, const ImageSize& size);

/// The window of an image of this size (after resizing) that training shows; may reach into the padding.
Region random_window(const AugmentSpec& spec, Index epoch, Index position, const ImageSize& size);

}  // namespace convoy
