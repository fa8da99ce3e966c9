// SPDX-License-Identifier: Apache-2.0
// Automatic augmentation: a few operations of random kind and strength an image. Spaces and tables as torchvision has
// them. RandAugment: Cubuk et al. 2019 (arXiv 1909.13719). TrivialAugmentWide: Müller, Hutter 2021 (arXiv 2103.10158).
// AutoAugment: Cubuk et al. 2018 (arXiv 1805.09501), the policy learned on ImageNet. AugMix: Hendrycks et al. 2020
// (arXiv 1912.02781), three chains of one to three operations.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "image/affine.hpp"

namespace convoy {

enum class Policy : std::uint8_t { none, rand, trivial, autoaugment, mix };

struct PolicySpec {
  Policy policy = Policy::none;
  int operations = 2;  ///< rand: one after another
  int magnitude = 9;   ///< rand: of `bins`
  int bins = 31;       ///< rand; the others have their own
  int severity = 3;    ///< mix: magnitudes are among the lowest so many of 10
};

enum class PolicyOperation : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  stretch_contrast,
  equalize,
  invert,
};

/// magnitude: shear tangent, translation in pixels, degrees, change of an enhancement's factor from 1, bits kept,
/// threshold; 0 where the operation has none.
struct PolicyStep {
  PolicyOperation operation = PolicyOperation::identity;
  double magnitude = 0;
};

/// One half of a sub-policy of AutoAugment: with a probability, at a magnitude of 0 to 9 (-1: the operation has none).
struct PolicyEntry {
  PolicyOperation operation;
  float probability;
  int magnitude;
};
std::span<const std::array<PolicyEntry, 2>> imagenet_policy();
bool has_sign(PolicyOperation operation);

/// Magnitude number `bin` of an operation, unsigned. h and w: of the image (translations grow with it).
double policy_magnitude(const PolicySpec& spec, PolicyOperation operation, int bin, Index height, Index width);

/// What is done to one image. Without chains its steps follow each other. Each chain begins with the image as it was;
/// the result is the sum of image and chains by their weights, which add up to 1, rounded to the nearest.
struct PolicyDraw {
  struct Chain {
    int steps = 0;
    float weight = 0;
  };
  std::vector<PolicyStep> steps;  ///< chain after chain
  std::vector<Chain> chains;
  float image_weight = 0;  ///< with chains
};

/// Draws what is done to one image; `to` is replaced.
void draw_policy(const PolicySpec& spec, Random& random, Index height, Index width, PolicyDraw& to);

/// Memory that is used again for the next image.
struct PolicyBuffers {
  std::vector<std::uint8_t> of_step, image;
  std::vector<float> sum;
};
void apply_policy(const PolicyDraw& draw, const Canvas& canvas, std::uint8_t fill, PolicyBuffers& buffers);

void apply_policy_step(const PolicyStep& step, const Canvas& canvas, std::uint8_t fill,
                       std::vector<std::uint8_t>& scratch);

}  // namespace convoy
