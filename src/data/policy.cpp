// SPDX-License-Identifier: Apache-2.0
#include "data/policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Op = PolicyOperation;

constexpr int trivial_bins = 31, autoaugment_bins = 10, mix_bins = 10;
/// AugMix: chains, and the most operations of one.
constexpr int mix_width = 3, mix_depth = 3;

/// What RandAugment and TrivialAugment choose from, and all but the first AugMix.
constexpr std::array<Op, 14> choices{
    Op::identity,   Op::shear_x,  Op::shear_y,   Op::translate_x, Op::translate_y, Op::rotate,           Op::brightness,
    Op::saturation, Op::contrast, Op::sharpness, Op::posterize,   Op::solarize,    Op::stretch_contrast, Op::equalize};

using SubPolicy = std::array<PolicyEntry, 2>;

constexpr std::array<SubPolicy, 25> learned_on_imagenet{{
    {{{Op::posterize, 0.4F, 8}, {Op::rotate, 0.6F, 9}}},
    {{{Op::solarize, 0.6F, 5}, {Op::stretch_contrast, 0.6F, -1}}},
    {{{Op::equalize, 0.8F, -1}, {Op::equalize, 0.6F, -1}}},
    {{{Op::posterize, 0.6F, 7}, {Op::posterize, 0.6F, 6}}},
    {{{Op::equalize, 0.4F, -1}, {Op::solarize, 0.2F, 4}}},
    {{{Op::equalize, 0.4F, -1}, {Op::rotate, 0.8F, 8}}},
    {{{Op::solarize, 0.6F, 3}, {Op::equalize, 0.6F, -1}}},
    {{{Op::posterize, 0.8F, 5}, {Op::equalize, 1.0F, -1}}},
    {{{Op::rotate, 0.2F, 3}, {Op::solarize, 0.6F, 8}}},
    {{{Op::equalize, 0.6F, -1}, {Op::posterize, 0.4F, 6}}},
    {{{Op::rotate, 0.8F, 8}, {Op::saturation, 0.4F, 0}}},
    {{{Op::rotate, 0.4F, 9}, {Op::equalize, 0.6F, -1}}},
    {{{Op::equalize, 0.0F, -1}, {Op::equalize, 0.8F, -1}}},
    {{{Op::invert, 0.6F, -1}, {Op::equalize, 1.0F, -1}}},
    {{{Op::saturation, 0.6F, 4}, {Op::contrast, 1.0F, 8}}},
    {{{Op::rotate, 0.8F, 8}, {Op::saturation, 1.0F, 2}}},
    {{{Op::saturation, 0.8F, 8}, {Op::solarize, 0.8F, 7}}},
    {{{Op::sharpness, 0.4F, 7}, {Op::invert, 0.6F, -1}}},
    {{{Op::shear_x, 0.6F, 5}, {Op::equalize, 1.0F, -1}}},
    {{{Op::saturation, 0.4F, 0}, {Op::equalize, 0.6F, -1}}},
    {{{Op::equalize, 0.4F, -1}, {Op::solarize, 0.2F, 4}}},
    {{{Op::solarize, 0.6F, 5}, {Op::stretch_contrast, 0.6F, -1}}},
    {{{Op::invert, 0.6F, -1}, {Op::equalize, 1.0F, -1}}},
    {{{Op::saturation, 0.6F, 4}, {Op::contrast, 1.0F, 8}}},
    {{{Op::equalize, 0.8F, -1}, {Op::equalize, 0.6F, -1}}},
}};

int bins_of(const PolicySpec& spec) {
  switch (spec.policy) {
    case Policy::trivial:
      return trivial_bins;
    case Policy::autoaugment:
      return autoaugment_bins;
    case Policy::mix:
      return mix_bins;
    case Policy::none:
    case Policy::rand:
      break;
  }
  return spec.bins;
}

/// Halves to even, as torch.round.
double round_to_even(double v) { return std::nearbyint(v); }

PolicyStep with_sign(const PolicySpec& spec, Op operation, int bin, Random& random, Index height, Index width) {
  const bool negative = random.bits() >> 31 != 0;
  const double magnitude = policy_magnitude(spec, operation, bin, height, width);
  return {operation, negative && has_sign(operation) ? -magnitude : magnitude};
}

Op draw_operation(Random& random, std::size_t first = 0) {
  return choices[first + static_cast<std::size_t>(random.below(static_cast<Index>(choices.size() - first)))];
}

/// Draws numbers that add up to 1 from Dirichlet's distribution with all parameters 1.
template <std::size_t count>
std::array<float, count> draw_shares(Random& random) {
  std::array<float, count> shares{};
  float sum = 0;
  for (float& share : shares) {
    share = static_cast<float>(-std::log((static_cast<double>(random.bits()) + 0.5) * 0x1p-32));
    sum += share;
  }
  for (float& share : shares) share /= sum;
  return shares;
}

void draw_mix(const PolicySpec& spec, Random& random, Index height, Index width, PolicyDraw& to) {
  const auto [image, chains] = draw_shares<2>(random);
  to.image_weight = image;
  for (const float share : draw_shares<mix_width>(random)) {
    const int depth = 1 + static_cast<int>(random.below(mix_depth));
    to.chains.push_back({depth, chains * share});
    for (int i = 0; i < depth; ++i) {
      const Op operation = draw_operation(random, 1);
      const auto bin = static_cast<int>(random.below(spec.severity));
      to.steps.push_back(with_sign(spec, operation, bin, random, height, width));
    }
  }
}

void shear_or_move(const PolicyStep& step, const Canvas& canvas, std::uint8_t fill,
                   std::vector<std::uint8_t>& scratch) {
  constexpr double degrees_per_radian = 180 / 3.14159265358979323846;
  AffineSpec spec;
  switch (step.operation) {
    case Op::shear_x:
      spec.shear_x = std::atan(step.magnitude) * degrees_per_radian;
      break;
    case Op::shear_y:
      spec.shear_y = std::atan(step.magnitude) * degrees_per_radian;
      break;
    case Op::translate_x:
      spec.move_x = std::trunc(step.magnitude);
      break;
    case Op::translate_y:
      spec.move_y = std::trunc(step.magnitude);
      break;
    case Op::rotate:
      // Pillow turns the other way round, about the middle.
      spec.degrees = -step.magnitude;
      spec.centre_x = static_cast<double>(canvas.width) / 2;
      spec.centre_y = static_cast<double>(canvas.height) / 2;
      break;
    case Op::identity:
    case Op::brightness:
    case Op::saturation:
    case Op::contrast:
    case Op::sharpness:
    case Op::posterize:
    case Op::solarize:
    case Op::stretch_contrast:
    case Op::equalize:
    case Op::invert:
      break;  // they move nothing
  }
  transform(canvas, inverse_affine(spec), Sampling::nearest, fill, scratch);
}

}  // namespace

std::span<const SubPolicy> imagenet_policy() { return learned_on_imagenet; }

bool has_sign(Op operation) {
  switch (operation) {
    case Op::shear_x:
    case Op::shear_y:
    case Op::translate_x:
    case Op::translate_y:
    case Op::rotate:
    case Op::brightness:
    case Op::saturation:
    case Op::contrast:
    case Op::sharpness:
      return true;
    case Op::identity:
    case Op::posterize:
    case Op::solarize:
    case Op::stretch_contrast:
    case Op::equalize:
    case Op::invert:
      return false;
  }
  return false;
}

double policy_magnitude(const PolicySpec& spec, PolicyOperation operation, int bin, Index height, Index width) {
  const bool wide = spec.policy == Policy::trivial, mixes = spec.policy == Policy::mix;
  const int bins = bins_of(spec);
  /// Of height and width.
  const double most_moved = mixes ? 1 / 3.0 : 150.0 / 331.0;
  const double part = static_cast<double>(bin) / (bins - 1);
  switch (operation) {
    case Op::shear_x:
    case Op::shear_y:
      return part * (wide ? 0.99 : 0.3);
    case Op::translate_x:
      return part * (wide ? 32.0 : most_moved * static_cast<double>(width));
    case Op::translate_y:
      return part * (wide ? 32.0 : most_moved * static_cast<double>(height));
    case Op::rotate:
      return part * (wide ? 135.0 : 30.0);
    case Op::brightness:
    case Op::saturation:
    case Op::contrast:
    case Op::sharpness:
      return part * (wide ? 0.99 : 0.9);
    case Op::posterize:
      return (mixes ? 4 : 8) - round_to_even(bin / ((bins - 1) / (wide ? 6.0 : 4.0)));
    case Op::solarize:
      return 255 * (1 - part);
    case Op::identity:
    case Op::stretch_contrast:
    case Op::equalize:
    case Op::invert:
      break;
  }
  return 0;
}

void draw_policy(const PolicySpec& spec, Random& random, Index height, Index width, PolicyDraw& to) {
  to.steps.clear();
  to.chains.clear();
  switch (spec.policy) {
    case Policy::none:
      return;
    case Policy::rand:
      for (int i = 0; i < spec.operations; ++i) {
        const Op operation = draw_operation(random);
        to.steps.push_back(with_sign(spec, operation, spec.magnitude, random, height, width));
      }
      return;
    case Policy::trivial: {
      const Op operation = draw_operation(random);
      const auto bin = static_cast<int>(random.below(trivial_bins));
      to.steps.push_back(with_sign(spec, operation, bin, random, height, width));
      return;
    }
    case Policy::autoaugment:
      for (const PolicyEntry& entry :
           learned_on_imagenet[static_cast<std::size_t>(random.below(learned_on_imagenet.size()))]) {
        const bool chosen = random.uniform() < entry.probability;
        const PolicyStep step = with_sign(spec, entry.operation, std::max(entry.magnitude, 0), random, height, width);
        if (chosen) to.steps.push_back(step);
      }
      return;
    case Policy::mix:
      draw_mix(spec, random, height, width, to);
  }
}

void apply_policy(const PolicyDraw& draw, const Canvas& canvas, std::uint8_t fill, PolicyBuffers& buffers) {
  if (draw.chains.empty()) {
    for (const PolicyStep& step : draw.steps) apply_policy_step(step, canvas, fill, buffers.of_step);
    return;
  }
  const auto bytes = static_cast<std::size_t>(canvas.height * canvas.width * 3);
  const std::span<std::uint8_t> pixels(canvas.pixels, bytes);
  buffers.image.assign(pixels.begin(), pixels.end());
  buffers.sum.resize(bytes);
  const auto weighted = [](float weight) {
    return [weight](std::uint8_t v) { return weight * static_cast<float>(v); };
  };
  std::transform(pixels.begin(), pixels.end(), buffers.sum.begin(), weighted(draw.image_weight));
  auto step = draw.steps.begin();
  for (const PolicyDraw::Chain& chain : draw.chains) {
    std::copy(buffers.image.begin(), buffers.image.end(), pixels.begin());
    for (int i = 0; i < chain.steps; ++i) apply_policy_step(*step++, canvas, fill, buffers.of_step);
    for (std::size_t i = 0; i < bytes; ++i) buffers.sum[i] += chain.weight * static_cast<float>(pixels[i]);
  }
  for (std::size_t i = 0; i < bytes; ++i) pixels[i] = static_cast<std::uint8_t>(std::min(255.F, buffers.sum[i] + 0.5F));
}

void apply_policy_step(const PolicyStep& step, const Canvas& canvas, std::uint8_t fill,
                       std::vector<std::uint8_t>& scratch) {
  const auto factor = static_cast<float>(1 + step.magnitude);
  switch (step.operation) {
    case Op::identity:
      return;
    case Op::shear_x:
    case Op::shear_y:
    case Op::translate_x:
    case Op::translate_y:
    case Op::rotate:
      return shear_or_move(step, canvas, fill, scratch);
    case Op::brightness:
      return adjust_brightness(canvas, factor);
    case Op::saturation:
      return adjust_saturation(canvas, factor);
    case Op::contrast:
      return adjust_contrast(canvas, factor);
    case Op::sharpness:
      return adjust_sharpness(canvas, factor, scratch);
    case Op::posterize:
      return posterize(canvas, static_cast<int>(step.magnitude));
    case Op::solarize:
      return solarize(canvas, step.magnitude);
    case Op::stretch_contrast:
      return stretch_contrast(canvas);
    case Op::equalize:
      return equalize(canvas);
    case Op::invert:
      return invert(canvas);
  }
}

}  // namespace convoy
