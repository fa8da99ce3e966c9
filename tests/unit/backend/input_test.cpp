// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/input.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/formula.hpp"
#include "support/reference/input.hpp"

namespace convoy::cpu {
namespace {

/// One 2 x 3 image of one channel with pixels 10 ... 60, seen through a window as large.
class OneImage : public testing::Test {
 protected:
  OneImage() {
    spec_.height = 2;
    spec_.width = 3;
    spec_.channels = 1;
    spec_.mean[0] = 10;
    spec_.std[0] = 2;
  }
  std::vector<float> make(const SampleSpec& sample, Index height = 2, Index width = 3) const {
    std::vector<float> x(static_cast<std::size_t>(height * width), NAN);
    make_input(spec_, std::span(&sample, 1), pixels_.data(), height, width, x.data());
    return x;
  }
  InputSpec spec_;
  std::vector<std::uint8_t> pixels_{10, 20, 30, 40, 50, 60};
};

TEST_F(OneImage, IsNormalisedByChannel) { EXPECT_EQ(make({}), (std::vector<float>{0, 5, 10, 15, 20, 25})); }
TEST_F(OneImage, IsFlippedAfterTheCrop) {
  EXPECT_EQ(make({.x = 1, .flip = 1}, 2, 2), (std::vector<float>{10, 5, 25, 20}));
}
TEST_F(OneImage, IsFlippedUpsideDownAfterTheCrop) {
  EXPECT_EQ(make({.vertical_flip = 1}), (std::vector<float>{15, 20, 25, 0, 5, 10}));
  EXPECT_EQ(make({.x = 1, .flip = 1, .vertical_flip = 1}, 2, 2), (std::vector<float>{25, 20, 10, 5}));
}
TEST_F(OneImage, PaddingIsBlackBeforeNormalisation) {
  EXPECT_EQ(make({.y = -1, .x = 1}), (std::vector<float>{-5, -5, -5, 5, 10, -5}));
}
TEST_F(OneImage, ReflectedPaddingShowsTheImageAgain) {
  spec_.padding = Padding::reflect;
  EXPECT_EQ(make({.y = -1, .x = 1}), (std::vector<float>{20, 25, 20, 5, 10, 5}));
  EXPECT_EQ(make({.y = 1, .x = 1, .flip = 1}), (std::vector<float>{20, 25, 20, 5, 10, 5}));
  EXPECT_EQ(make({.y = -1, .x = 0, .vertical_flip = 1}), (std::vector<float>{0, 5, 10, 15, 20, 25}));
}
TEST_F(OneImage, FlippedPaddingChangesSides) {
  EXPECT_EQ(make({.y = 1, .x = 2, .flip = 1}), (std::vector<float>{-5, -5, 25, -5, -5, -5}));
  EXPECT_EQ(make({.y = 1, .x = 2, .vertical_flip = 1}), (std::vector<float>{-5, -5, -5, 25, -5, -5}));
}
TEST_F(OneImage, WindowMayLieOutside) { EXPECT_EQ(make({.y = 7, .x = -9}), std::vector<float>(6, -5)); }
TEST_F(OneImage, ErasedPixelsAreZeroAfterNormalisation) {
  EXPECT_EQ(make({.erase_y = 1, .erase_x = -1, .erase_h = 5, .erase_w = 3}), (std::vector<float>{0, 5, 10, 0, 0, 25}));
}
TEST_F(OneImage, MeanImageMovesWithTheCropAndPaddingIsZeroAfterIt) {
  spec_.normalise = InputSpec::Normalise::mean_image;
  spec_.mean_image = {10, 10, 10, 0, 0, 0};
  EXPECT_EQ(make({.y = -1, .x = 1}), (std::vector<float>{0, 0, 0, 5, 10, 0}));
}
TEST_F(OneImage, OwnStatistics) {
  spec_.normalise = InputSpec::Normalise::per_image;  // mean 35, variance 875 / 3
  const std::vector<float> x = make({});
  EXPECT_NEAR(x[0], -25 / std::max(std::sqrt(875 / 3.0), 255 / std::sqrt(6.0)), 1e-6);
  pixels_.assign(6, 77);
  EXPECT_EQ(make({}), std::vector<float>(6, 0)) << "a plain image is divided by 1/sqrt(count)";
}
TEST(Input, PartnersImageIsMadeItsOwnWay) {
  InputSpec spec;
  spec.height = spec.width = spec.channels = 1;
  const std::vector<std::uint8_t> pixels{100, 200};
  const std::vector<SampleSpec> samples{{.sample = 0, .partner = 1, .lambda = 0.75F},
                                        {.sample = 1, .partner = 0, .lambda = 0.5F}};
  std::vector<float> x(2, NAN);
  make_input(spec, samples, pixels.data(), 1, 1, x.data());
  EXPECT_EQ(x, (std::vector<float>{125, 150}));
}

TEST(Input, ABoxOfThePartnersImageReplacesTheOwn) {
  InputSpec spec;
  spec.height = 2;
  spec.width = 3;
  spec.channels = 1;
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  const std::vector<SampleSpec> samples{
      {.sample = 0, .partner = 1, .mix_y = 1, .mix_x = -1, .mix_h = 9, .mix_w = 3, .lambda = 0.25F},
      {.sample = 1, .flip = 1, .erase_y = 1, .erase_x = 1, .erase_h = 1, .erase_w = 1}};
  std::vector<float> x(12, NAN);
  make_input(spec, samples, pixels.data(), 2, 3, x.data());
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 16, 0, 6, 13, 12, 11, 16, 0, 14}));
}

struct Case {
  const char* name;
  InputSpec::Normalise normalise;
  Index source_height, source_width, channels, height, width;
  Padding padding = Padding::constant;
};
class InputStage : public testing::TestWithParam<Case> {};

TEST_P(InputStage, EqualsReference) {
  const Case& c = GetParam();
  InputSpec spec;
  spec.normalise = c.normalise;
  spec.padding = c.padding;
  spec.height = c.source_height;
  spec.width = c.source_width;
  spec.channels = c.channels;
  spec.mean = {125.3F, 123, 113.9F, 7};
  spec.std = {63, 62.1F, 66.7F, 2};
  for (const double v : formula_values("mean image", c.source_height * c.source_width * c.channels, 100, 120)) {
    spec.mean_image.push_back(static_cast<float>(v));
  }
  constexpr Index images = 7, n = 40;
  const std::vector<std::uint8_t> pixels =
      formula_images("pixels", images * c.source_height * c.source_width * c.channels);
  std::vector<SampleSpec> samples(n);
  for (Index i = 0; i < n; ++i) {
    const auto below = [&](const char* what, std::int64_t from, std::int64_t to) {
      return static_cast<std::int16_t>(
          from + static_cast<std::int64_t>(formula_bits(what, i) % static_cast<std::uint64_t>(to - from)));
    };
    SampleSpec& sample = samples[static_cast<std::size_t>(i)];
    sample.sample = below("sample", 0, images);
    sample.y = below("y", -c.height, c.source_height + 1);
    sample.x = below("x", -c.width, c.source_width + 1);
    sample.flip = static_cast<std::uint8_t>(below("flip", 0, 2));
    sample.vertical_flip = static_cast<std::uint8_t>(below("vertical flip", 0, 2));
    if (i % 3 == 0) {
      sample.erase_y = below("erase_y", -3, c.height);
      sample.erase_x = below("erase_x", -3, c.width);
      sample.erase_h = below("erase_h", 0, c.height + 3);
      sample.erase_w = below("erase_w", 0, c.width + 3);
    }
    if (i % 4 == 0) {
      sample.partner = below("partner", 0, n);
      sample.lambda = (formula_uniform("lambda", i) + 1) / 2;
    }
    if (i % 8 == 0) {
      sample.mix_y = below("mix_y", -3, c.height);
      sample.mix_x = below("mix_x", -3, c.width);
      sample.mix_h = below("mix_h", 1, c.height + 3);
      sample.mix_w = below("mix_w", 0, c.width + 3);
    }
  }
  const Index floats = c.channels * c.height * c.width;
  constexpr float guard = 4711;
  std::vector<float> x(static_cast<std::size_t>(n * floats), std::numeric_limits<float>::quiet_NaN());
  x.push_back(guard);
  make_input(spec, samples, pixels.data(), c.height, c.width, x.data());
  EXPECT_EQ(x.back(), guard);
  const reference::Tensor exact = reference::make_input(spec, samples, pixels.data(), c.height, c.width);
  // Two roundings of values up to 2.5 * 100 / 2, and of the reciprocal of std.
  for (std::size_t i = 0; i < exact.values.size(); ++i) {
    ASSERT_NEAR(x[i], exact.values[i], 4 * 0x1p-24 * (4 + std::abs(exact.values[i])))
        << "sample " << static_cast<Index>(i) / floats << " value " << static_cast<Index>(i) % floats;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, InputStage,
    testing::Values(Case{"channel", InputSpec::Normalise::channel, 12, 10, 3, 12, 10},
                    Case{"channel_smaller", InputSpec::Normalise::channel, 9, 13, 4, 5, 8},
                    Case{"channel_larger", InputSpec::Normalise::channel, 4, 5, 1, 9, 7},
                    Case{"mean_image", InputSpec::Normalise::mean_image, 8, 9, 3, 8, 9},
                    Case{"per_image", InputSpec::Normalise::per_image, 8, 9, 3, 7, 9},
                    Case{"reflected", InputSpec::Normalise::channel, 8, 9, 3, 8, 9, Padding::reflect},
                    Case{"reflected_often", InputSpec::Normalise::channel, 1, 2, 3, 6, 9, Padding::reflect},
                    Case{"reflected_mean_image", InputSpec::Normalise::mean_image, 5, 7, 3, 8, 9, Padding::reflect},
                    Case{"reflected_per_image", InputSpec::Normalise::per_image, 8, 9, 3, 7, 9, Padding::reflect}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace convoy::cpu
