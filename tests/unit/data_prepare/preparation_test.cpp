// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "preprocess/cut.hpp"
#include "preprocess/images/process.hpp"
#include "preprocess/options.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/statistics.hpp"
#include "support/expect_error.hpp"

namespace convoy::preparation {
namespace {

TEST(CutEvenly, PartsJoinAndDifferByAtMostOne) {
  for (const Index samples : {1, 7, 23, 1000}) {
    for (const Index partitions : {1, 2, 3, 7}) {
      Index end = 0;
      for (Index number = 0; number < partitions; ++number) {
        const Range range = cut_evenly(samples, partitions, number);
        EXPECT_EQ(range.begin, end);
        EXPECT_GE(range.count, samples / partitions);
        EXPECT_LE(range.count, samples / partitions + 1);
        end = range.end();
      }
      EXPECT_EQ(end, samples);
    }
  }
}

TEST(Statistics, EqualADoubleSum) {
  // 37 images of 2x2 pixels: the sums come from sum_channels, mean and deviation from a double loop.
  constexpr Index images = 37, pixels = 4, channels = 2;
  const auto value = [](Index image, Index k) { return static_cast<std::uint8_t>(image * 13 + k * k); };
  PixelSums sums{std::vector<std::int64_t>(channels), std::vector<std::int64_t>(channels)};
  for (Index i = 0; i < images; ++i) {
    std::uint8_t image[pixels * channels];
    for (Index k = 0; k < pixels * channels; ++k) image[k] = value(i, k);
    const ImageSums own = sum_channels({image, 2, 2, channels, 2 * channels});
    for (std::size_t c = 0; c < channels; ++c) {
      sums.sum[c] += static_cast<std::int64_t>(own.sum[c]);
      sums.squares[c] += static_cast<std::int64_t>(own.squares[c]);
    }
  }
  const Normalisation result = normalisation_of(sums, images * pixels);
  for (Index c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (Index i = 0; i < images; ++i) {
      for (Index k = c; k < pixels * channels; k += channels) sum += value(i, k);
    }
    const double mean = sum / (images * pixels);
    for (Index i = 0; i < images; ++i) {
      for (Index k = c; k < pixels * channels; k += channels) squares += (value(i, k) - mean) * (value(i, k) - mean);
    }
    EXPECT_DOUBLE_EQ(result.mean[static_cast<std::size_t>(c)], mean);
    EXPECT_NEAR(result.std[static_cast<std::size_t>(c)], std::sqrt(squares / (images * pixels)), 1e-12);
  }
}

TEST(Statistics, OfImageNetSizeDoNotOverflow) {
  // 1.3 million white images of 500x400: the squares sum to 1.7e16 a channel, n times that passes 64 bits.
  PixelSums white;
  const Index samples = 1300000, pixels = samples * 500 * 400;
  white.sum = {pixels * 255, 0};
  white.squares = {pixels * 255 * 255, 0};
  const Normalisation result = normalisation_of(white, samples * 500 * 400);
  EXPECT_EQ(result.mean[0], 255);
  EXPECT_EQ(result.std[0], 0);
  EXPECT_EQ(result.mean[1], 0);
  expect_error(Exit::data, {"too many pixels"}, [&] { normalisation_of(white, (Index{1} << 40) * 500 * 400); });
}

TEST(CommandLine, DefaultsAndValues) {
  const auto spec = std::get<PrepareSpec>(parse_command_line(
      {"synthetic", "--out", "x", "--samples", "300", "--image-size", "16x24", "--seed=5", "--mean-image"}));
  EXPECT_EQ(spec.kind, find_source("synthetic"));
  EXPECT_EQ(spec.out, "x");
  EXPECT_EQ(spec.partitions, 8);
  EXPECT_EQ(spec.val_partitions, 0);
  EXPECT_EQ(spec.synthetic.samples, 300);
  EXPECT_EQ(spec.synthetic.height, 16);
  EXPECT_EQ(spec.synthetic.width, 24);
  EXPECT_EQ(spec.synthetic.seed, 5U);
  EXPECT_EQ(spec.val_samples, 500);
  EXPECT_TRUE(spec.mean_image);
  EXPECT_FALSE(spec.overwrite);
  EXPECT_TRUE(
      std::get<PrepareSpec>(parse_command_line({"cifar100", "--source", "s", "--out", "x", "--coarse"})).coarse);
  EXPECT_EQ(std::get<VerifySpec>(parse_command_line({"verify", "dir"})).folder, "dir");
  EXPECT_EQ(std::get<InspectSpec>(parse_command_line({"inspect", "dir"})).folder, "dir");
  EXPECT_NE(std::get<HelpSpec>(parse_command_line({"mnist", "--help"})).text.find("--partitions N (=8)"),
            std::string::npos);
  EXPECT_NE(std::get<HelpSpec>(parse_command_line({})).text.find("Exit codes: 0 ok"), std::string::npos);
}

TEST(CommandLine, Refusals) {
  const auto refuse = [](const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    expect_error(Exit::usage, parts, [&] { parse_command_line(words); });
  };
  refuse({"cifar01"}, {"unknown kind 'cifar01'", "cifar10"});
  refuse({"mnist", "--sorce", "x"}, {"unknown option '--sorce'", "did you mean --source"});
  refuse({"mnist", "--partition", "3"}, {"unknown option '--partition'", "did you mean --partitions"});  // not guessed
  refuse({"mnist", "--out", "x"}, {"no --source"});
  refuse({"mnist", "--source", "x"}, {"no --out"});
  refuse({"synthetic", "--out", "x", "--source", "y"}, {"unknown option '--source'"});
  refuse({"synthetic", "--out", "x", "--samples", "many"}, {"many", "--samples"});
  refuse({"synthetic", "--out", "x", "--samples", "0"}, {"bad value for --samples (0)"});
  refuse({"synthetic", "--out", "x", "--image-size", "32by32"}, {"bad value for --image-size"});
  refuse({"synthetic", "--out", "x", "--image-size", "32x"}, {"bad value for --image-size"});
  refuse({"synthetic", "--out", "x", "--classes", "5000"}, {"bad value for --classes (5000)"});
  refuse({"synthetic", "--out", "x", "--seed", "-1"}, {"bad value for --seed (-1)"});
  refuse({"synthetic", "--out", "x", "--partitions", "100000"}, {"bad value for --partitions"});
  refuse({"synthetic", "y", "--out", "x"}, {"too many arguments"});
  refuse({"verify"}, {"no folder given"});
}

}  // namespace
}  // namespace convoy::preparation
