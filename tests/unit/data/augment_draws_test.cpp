// SPDX-License-Identifier: Apache-2.0
// The draws of resized crops, erasing, mixing and host changes: distributions, ranges, and what they depend on.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/errors.hpp"
#include "data/image_maker.hpp"
#include "image/resize.hpp"

namespace convoy {
namespace {

AugmentSpec imagenet() {
  return {.source_height = 60,
          .source_width = 80,
          .height = 32,
          .width = 32,
          .crop = Crop::resized,
          .flip = Flip::random,
          .seed = 4};
}

TEST(RandomRegion, AreasAndAspectsCoverTheirRanges) {
  const AugmentSpec spec = imagenet();
  double area = 0, square_area = 0, log_aspect = 0, smallest = 1, largest = 0;
  constexpr int count = 20000;
  for (Index p = 0; p < count; ++p) {
    const Region r = random_region(spec, 0, p, {600, 800});
    ASSERT_TRUE(r.y >= 0 && r.x >= 0 && r.y + r.height <= 600 && r.x + r.width <= 800);
    const double share = static_cast<double>(r.height * r.width) / (600 * 800),
                 aspect = static_cast<double>(r.width) / static_cast<double>(r.height);
    ASSERT_GT(aspect, 0.745);
    ASSERT_LT(aspect, 1.345);
    area += share / count;
    square_area += share * share / count;
    log_aspect += std::log(aspect) / count;
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
  }
  // Large regions often don't fit, and are drawn again. The numbers are those of torchvision's RandomResizedCrop for
  // images of this size, over 40,000 draws.
  EXPECT_NEAR(smallest, 0.08, 0.002);
  EXPECT_GT(largest, 0.98);
  EXPECT_NEAR(area, 0.434, 0.006);
  EXPECT_NEAR(std::sqrt(square_area - area * area), 0.217, 0.005);
  EXPECT_NEAR(log_aspect, 0.032, 0.005);
}

TEST(RandomRegion, ImpossibleAspectsTakeTheMiddle) {
  AugmentSpec spec = imagenet();
  spec.min_area = spec.max_area = 1;
  spec.min_aspect = spec.max_aspect = 0.5;
  EXPECT_EQ(random_region(spec, 0, 0, {100, 400}), (Region{0, 175, 100, 50}));
  spec.min_aspect = spec.max_aspect = 2;
  EXPECT_EQ(random_region(spec, 0, 0, {400, 100}), (Region{175, 0, 50, 100}));
}

TEST(Erasing, HasItsProbabilityAndStaysInside) {
  AugmentSpec spec = imagenet();
  spec.erasing.probability = 0.25F;
  int erased = 0;
  for (Index p = 0; p < 8000; ++p) {
    SampleSpec s;
    augment(spec, 1, p, 0, s);
    EXPECT_EQ(s.y, 0) << "the image is made whole";
    if (s.erase_h == 0) continue;
    ++erased;
    ASSERT_TRUE(s.erase_y >= 0 && s.erase_x >= 0 && s.erase_y + s.erase_h <= 32 && s.erase_x + s.erase_w <= 32);
    const double share = s.erase_h * s.erase_w / 1024.0;
    ASSERT_GT(share, 0.01);
    ASSERT_LT(share, 0.38);
  }
  EXPECT_NEAR(erased, 2000, 160);
}

std::vector<SampleSpec> batch_of(Index n, Index first = 0) {
  std::vector<SampleSpec> batch(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    batch[static_cast<std::size_t>(i)].position = first + i;
    batch[static_cast<std::size_t>(i)].a = static_cast<std::int32_t>(i % 7);
  }
  return batch;
}

/// Of Beta(alpha, alpha).
double deviation_of_beta(double alpha) { return std::sqrt(1 / (4 * (2 * alpha + 1))); }

TEST(Mixing, LambdaIsBetaAndThePartnerIsHalfABatchAway) {
  for (const float alpha : {0.2F, 1.0F, 4.0F}) {
    AugmentSpec spec = imagenet();
    spec.mixing.mixup = alpha;
    double sum = 0, squares = 0;
    constexpr Index count = 20000;
    std::vector<SampleSpec> batch = batch_of(count);
    mix_batch(spec, 2, batch);
    for (Index i = 0; i < count; ++i) {
      const SampleSpec& s = batch[static_cast<std::size_t>(i)];
      ASSERT_EQ(s.partner, (i + count / 2) % count);
      ASSERT_EQ(s.b, batch[static_cast<std::size_t>(s.partner)].a);
      ASSERT_EQ(s.mix_h, 0);
      ASSERT_TRUE(s.lambda >= 0 && s.lambda <= 1);
      sum += s.lambda;
      squares += (s.lambda - 0.5) * (s.lambda - 0.5);
    }
    EXPECT_NEAR(sum / count, 0.5, 0.015);
    EXPECT_NEAR(std::sqrt(squares / count), deviation_of_beta(alpha), 0.01) << alpha;
  }
}

TEST(Mixing, ABoxHasTheShareThatLambdaLeaves) {
  AugmentSpec spec = imagenet();
  spec.mixing.cutmix = 1;
  spec.mixing.probability = 0.5F;
  std::vector<SampleSpec> batch = batch_of(4000);
  mix_batch(spec, 0, batch);
  int mixed = 0;
  for (const SampleSpec& s : batch) {
    if (s.partner < 0) {
      ASSERT_EQ(s.lambda, 1);
      continue;
    }
    ++mixed;
    ASSERT_TRUE(s.mix_y >= 0 && s.mix_x >= 0 && s.mix_y + s.mix_h <= 32 && s.mix_x + s.mix_w <= 32);
    ASSERT_FLOAT_EQ(s.lambda, 1 - static_cast<float>(s.mix_h * s.mix_w) / 1024);
  }
  EXPECT_NEAR(mixed, 1950, 130);
}

TEST(Mixing, BothKindsTakeHalfEachAndDependOnThePositionAlone) {
  AugmentSpec spec = imagenet();
  spec.mixing = {.mixup = 0.4F, .cutmix = 1};
  std::vector<SampleSpec> whole = batch_of(2000), part = batch_of(100, 300);
  mix_batch(spec, 0, whole);
  mix_batch(spec, 0, part);
  int boxes = 0;
  for (const SampleSpec& s : whole) boxes += s.mix_h > 0 ? 1 : 0;
  EXPECT_NEAR(boxes, 970, 90);
  for (std::size_t i = 1; i < part.size(); ++i) {
    EXPECT_EQ(part[i].lambda, whole[300 + i].lambda);
    EXPECT_EQ(part[i].mix_x, whole[300 + i].mix_x);
  }
  std::vector<SampleSpec> one = batch_of(1);
  mix_batch(spec, 0, one);
  EXPECT_EQ(one[0].partner, -1) << "nobody to mix with";
}

class HostChanges : public testing::Test {
 protected:
  HostChanges() {
    for (Index i = 0; i < 60 * 80 * 3; ++i) pixels_.push_back(static_cast<std::uint8_t>((i * 37 + i / 240 * 11) % 251));
    spec_.crop = Crop::window;
    spec_.fill = 9;
  }
  std::vector<std::uint8_t> make(const AugmentSpec& spec, Index position, Index epoch = 0) const {
    std::vector<std::uint8_t> to(static_cast<std::size_t>(spec.height * spec.width * 3));
    EXPECT_TRUE(ImageMaker(spec).make(pixels_, epoch, position, to.data()).ok());
    return to;
  }
  AugmentSpec spec_ = imagenet();
  std::vector<std::uint8_t> pixels_;
};

TEST_F(HostChanges, AWindowIsTheOneThatTheInputStageTakes) {
  AugmentSpec stage = spec_;
  stage.pad = spec_.pad = 5;
  stage.fill = 0;
  ASSERT_FALSE(stage.on_host());
  ASSERT_TRUE(spec_.on_host());
  for (Index p = 0; p < 40; ++p) {
    SampleSpec s;
    augment(stage, 0, p, 0, s);
    const auto made = make(spec_, p);
    for (Index y = 0; y < 32; ++y) {
      for (Index x = 0; x < 32; ++x) {
        const Index row = s.y + y, column = s.x + x;
        const bool inside = row >= 0 && row < 60 && column >= 0 && column < 80;
        ASSERT_EQ(made[static_cast<std::size_t>((y * 32 + x) * 3)],
                  inside ? pixels_[static_cast<std::size_t>((row * 80 + column) * 3)] : 9);
      }
    }
  }
}

/// All of a large stored image is seen, and it is the image that `resize` makes.
TEST_F(HostChanges, StoredPixelsAreResizedUnlessWindowsAreAskedFor) {
  spec_.fill = 0;
  spec_.crop = Crop::automatic;
  AugmentSpec asked = spec_;
  asked.resize = 37;  // 8/7 of 32
  EXPECT_EQ(make(spec_, 3), make(asked, 3));
  spec_.pad = 4;
  spec_.train = false;
  const ImageView square{pixels_.data(), 60, 60, 3, 80 * 3};
  std::vector<std::uint8_t> whole(32 * 32 * 3), cut(60 * 60 * 3);
  Resizer().resize(square, 32, 32, whole.data());
  for (Index y = 0; y < 60; ++y) std::copy_n(square.row(y), 60 * 3, &cut[static_cast<std::size_t>(y * 60 * 3)]);
  spec_.source_width = 60;
  pixels_ = cut;
  EXPECT_EQ(make(spec_, 0), whole);
}

TEST_F(HostChanges, EveryChangeIsAFunctionOfSeedEpochAndPosition) {
  std::vector<AugmentSpec> specs(7, spec_);
  specs[0].colour = {.brightness = 0.4F, .contrast = 0.4F, .saturation = 0.4F, .hue = 0.1F};
  specs[1].colour = {.hsl_hue = 20, .hsl_saturation = 40, .hsl_lightness = 50};
  specs[2].colour.lighting = 0.1F;
  specs[3].geometry = {.rotate = 20, .shear = 0.1F, .min_scale = 0.8F, .max_scale = 1.2F};
  specs[4].policy.policy = Policy::rand;
  specs[5].policy.policy = Policy::trivial;
  specs[6].policy.policy = Policy::mix;
  for (const AugmentSpec& spec : specs) {
    const ImageMaker maker(spec);
    int changed = 0;
    for (Index p = 0; p < 20; ++p) {
      EXPECT_EQ(make(spec, p), make(spec, p));
      changed += make(spec, p) != make(spec_, p) ? 1 : 0;
    }
    EXPECT_GE(changed, 12);
    AugmentSpec reseeded = spec;
    reseeded.seed = 5;
    EXPECT_NE(make(spec, 3), make(reseeded, 3));
    EXPECT_NE(make(spec, 3), make(spec, 3, 1));
  }
}

/// Weights, lengths of chains and magnitudes as torchvision's AugMix draws them.
TEST(AugMix, DrawsAsTorchvisionDoes) {
  const PolicySpec spec{.policy = Policy::mix};
  constexpr int count = 20000;
  double image = 0, squares = 0, weight = 0, steps = 0, most_rotation = 0;
  std::array<int, 3> lengths{};
  std::set<PolicyOperation> seen;
  PolicyDraw draw;
  for (int i = 0; i < count; ++i) {
    Random random(1, Stream::policy, 0, static_cast<std::uint64_t>(i));
    draw_policy(spec, random, 200, 320, draw);
    ASSERT_EQ(draw.chains.size(), 3U);
    float sum = draw.image_weight;
    std::size_t length = 0;
    for (const PolicyDraw::Chain& chain : draw.chains) {
      sum += chain.weight;
      length += static_cast<std::size_t>(chain.steps);
      ++lengths.at(static_cast<std::size_t>(chain.steps - 1));
    }
    ASSERT_NEAR(sum, 1, 1e-6);
    ASSERT_EQ(draw.steps.size(), length);
    image += draw.image_weight / count;
    squares += draw.image_weight * draw.image_weight / count;
    weight += draw.chains[0].weight / count;
    steps += static_cast<double>(length) / count;
    for (const PolicyStep& step : draw.steps) {
      seen.insert(step.operation);
      if (step.operation == PolicyOperation::rotate) most_rotation = std::max(most_rotation, std::abs(step.magnitude));
    }
  }
  EXPECT_NEAR(image, 1 / 2.0, 0.01);
  EXPECT_NEAR(squares, 1 / 3.0, 0.01) << "uniform";
  EXPECT_NEAR(weight, 1 / 6.0, 0.005);
  EXPECT_NEAR(steps, 6, 0.05);
  for (const int times : lengths) EXPECT_NEAR(times, count, 450);
  EXPECT_EQ(seen.size(), 13U) << "all but identity and inversion";
  EXPECT_NEAR(most_rotation, 30 * 2 / 9.0, 1e-5) << "the third of ten";
}

TEST(AugMix, AddsImageAndChainsByTheirWeights) {
  const std::vector<std::uint8_t> image{10, 200, 30, 255, 0, 128, 7, 8, 9, 100, 101, 102};
  std::vector<std::uint8_t> brighter = image, inverted = image, scratch;
  const PolicyStep bright{PolicyOperation::brightness, 0.5}, invert{PolicyOperation::invert, 0};
  apply_policy_step(bright, {brighter.data(), 2, 2}, 0, scratch);
  apply_policy_step(invert, {inverted.data(), 2, 2}, 0, scratch);
  PolicyDraw draw;
  draw.steps = {bright, invert, invert, invert};
  draw.chains = {{1, 0.25F}, {2, 0.125F}, {1, 0.5F}};
  draw.image_weight = 0.125F;
  std::vector<std::uint8_t> made = image;
  PolicyBuffers buffers;
  apply_policy(draw, {made.data(), 2, 2}, 0, buffers);
  for (std::size_t i = 0; i < image.size(); ++i) {
    const double wanted = 0.25 * image[i] + 0.25 * brighter[i] + 0.5 * inverted[i];  // inverted twice is the image
    EXPECT_EQ(made[i], static_cast<int>(std::floor(wanted + 0.5))) << i;
  }
}

TEST_F(HostChanges, HslShiftsMoveWhatTheySay) {
  std::vector<std::uint8_t> red{200, 40, 40}, grey{90, 90, 90};
  shift_hsl({red.data(), 1, 1}, 60, 0, 0);  // a third of the circle
  EXPECT_NEAR(red[0], 40, 1);
  EXPECT_NEAR(red[1], 200, 1);
  EXPECT_NEAR(red[2], 40, 1);
  shift_hsl({grey.data(), 1, 1}, 0, 0, 50);
  for (const auto value : grey) EXPECT_NEAR(value, 140, 1);
  std::vector<std::uint8_t> same{12, 200, 77, 255, 0, 3, 128, 129, 130};
  const auto before = same;
  shift_hsl({same.data(), 1, 3}, 0, 0, 0);
  for (std::size_t i = 0; i < same.size(); ++i) EXPECT_NEAR(same[i], before[i], 1);
}

TEST_F(HostChanges, LightingFollowsThePrincipalComponents) {
  const auto shift = lighting_shift(imagenet_colours, {0.1, 0, 0});
  EXPECT_NEAR(shift[0], -255 * 0.1 * 0.2175 * 0.5675, 1e-3);
  EXPECT_NEAR(shift[2], -255 * 0.1 * 0.2175 * 0.5836, 1e-3);
  EXPECT_NEAR(lighting_shift(imagenet_colours, {0, 0, 1})[1], -255 * 0.0045 * 0.8140, 1e-3);
}

TEST(CheckAugment, RangesOutOfOrderAreUsageErrors) {
  std::vector<AugmentSpec> wrong(6, imagenet());
  wrong[0].min_area = 0;
  wrong[1].max_aspect = 0.5;
  wrong[2].erasing.probability = 0.5F, wrong[2].cutout = 4;
  wrong[3].channels = 1, wrong[3].colour.brightness = 0.1F;
  wrong[4].geometry.min_scale = 2;
  wrong[5].crop = Crop::window, wrong[5].resize = 20;
  for (const AugmentSpec& spec : wrong) {
    try {
      check_augment(spec);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
    }
  }
}

}  // namespace
}  // namespace convoy
