// SPDX-License-Identifier: Apache-2.0
#include "data/policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/errors.hpp"

namespace convoy {
namespace {

using Op = PolicyOperation;

constexpr int trivial_bins = 31, autoaugment_bins = 10;

/// What RandAugment and TrivialAugment choose from.
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

/// Halves to even, as torch.round.
double round_to_even(double v) { return std::nearbyint(v); }

PolicyStep with_sign(const PolicySpec& spec, Op operation, int bin, Random& random, Index height, Index width) {
  const bool negative = random.bits() >> 31 != 0;
  const double magnitude = policy_magnitude(spec, operation, bin, height, width);
  return {operation, negative && has_sign(operation) ? -magnitude : magnitude};
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
  const bool wide = spec.policy == Policy::trivial;
  const int bins = wide ? trivial_bins : spec.policy == Policy::autoaugment ? autoaugment_bins : spec.bins;
  const double part = static_cast<double>(bin) / (bins - 1);
  switch (operation) {
    case Op::shear_x:
    case Op::shear_y:
      return part * (wide ? 0.99 : 0.3);
    case Op::translate_x:
      return part * (wide ? 32.0 : 150.0 / 331.0 * static_cast<double>(width));
    case Op::translate_y:
      return part * (wide ? 32.0 : 150.0 / 331.0 * static_cast<double>(height));
    case Op::rotate:
      return part * (wide ? 135.0 : 30.0);
    case Op::brightness:
    case Op::saturation:
    case Op::contrast:
    case Op::sharpness:
      return part * (wide ? 0.99 : 0.9);
    case Op::posterize:
      return 8 - round_to_even(bin / ((bins - 1) / (wide ? 6.0 : 4.0)));
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

void draw_policy(const PolicySpec& spec, Random& random, Index height, Index width, std::vector<PolicyStep>& steps) {
  steps.clear();
  switch (spec.policy) {
    case Policy::none:
      return;
    case Policy::rand:
      for (int i = 0; i < spec.operations; ++i) {
        const Op operation = choices[static_cast<std::size_t>(random.below(choices.size()))];
        steps.push_back(with_sign(spec, operation, spec.magnitude, random, height, width));
      }
      return;
    case Policy::trivial: {
      const Op operation = choices[static_cast<std::size_t>(random.below(choices.size()))];
      const auto bin = static_cast<int>(random.below(trivial_bins));
      steps.push_back(with_sign(spec, operation, bin, random, height, width));
      return;
    }
    case Policy::autoaugment:
      for (const PolicyEntry& entry :
           learned_on_imagenet[static_cast<std::size_t>(random.below(learned_on_imagenet.size()))]) {
        const bool chosen = random.uniform() < entry.probability;
        const PolicyStep step = with_sign(spec, entry.operation, std::max(entry.magnitude, 0), random, height, width);
        if (chosen) steps.push_back(step);
      }
  }
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
