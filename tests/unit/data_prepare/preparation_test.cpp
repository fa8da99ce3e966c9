// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/deal.hpp"
#include "preprocess/images/process.hpp"
#include "preprocess/options.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/statistics.hpp"
#include "support/expect_error.hpp"

namespace convoy::preparation {
namespace {

TEST(Deal, PartsJoinAndDifferByAtMostOne) {
  for (const Index samples : {1, 7, 23, 1000}) {
    for (const Index partitions : {1, 2, 3, 7}) {
      Index end = 0;
      for (Index number = 0; number < partitions; ++number) {
        const Range range = deal(samples, partitions, number);
        EXPECT_EQ(range.begin, end);
        EXPECT_EQ(range.count, samples / partitions + (number < samples % partitions ? 1 : 0));
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

TEST(Statistics, CovarianceEqualsADoubleSum) {
  // Rows of 21 pixels: a whole vector and a rest. The three channels depend on one another.
  constexpr Index images = 7, height = 5, width = 21, pixels = height * width;
  const auto value = [](Index image, Index pixel, Index c) {
    const Index grey = (image * 29 + pixel * pixel * 7) % 151;
    return static_cast<std::uint8_t>(c == 0 ? grey : c == 1 ? 200 - grey : grey / 2 + pixel % 13);
  };
  PixelSums sums{std::vector<std::int64_t>(3), std::vector<std::int64_t>(3), std::vector<std::int64_t>(3)};
  std::array<double, 3> means{};
  for (Index i = 0; i < images; ++i) {
    std::vector<std::uint8_t> image;
    for (Index p = 0; p < pixels; ++p)
      for (Index c = 0; c < 3; ++c) {
        image.push_back(value(i, p, c));
        means.at(static_cast<std::size_t>(c)) += value(i, p, c) / static_cast<double>(images * pixels);
      }
    const ImageSums own = sum_channels({image.data(), height, width, 3, 3 * width});
    for (std::size_t c = 0; c < 3; ++c) {
      sums.sum[c] += static_cast<std::int64_t>(own.sum.at(c));
      sums.squares[c] += static_cast<std::int64_t>(own.squares.at(c));
      sums.products[c] += static_cast<std::int64_t>(own.products.at(c));
    }
  }
  const Normalisation result = normalisation_of(sums, images * pixels);
  ASSERT_EQ(result.covariance.size(), 9U);
  for (Index a = 0; a < 3; ++a)
    for (Index b = 0; b < 3; ++b) {
      double sum = 0;
      for (Index i = 0; i < images; ++i)
        for (Index p = 0; p < pixels; ++p)
          sum += (value(i, p, a) - means.at(static_cast<std::size_t>(a))) *
                 (value(i, p, b) - means.at(static_cast<std::size_t>(b)));
      EXPECT_NEAR(result.covariance[static_cast<std::size_t>(a * 3 + b)], sum / (images * pixels), 1e-9) << a << b;
    }
  EXPECT_EQ(result.covariance[1], result.covariance[3]);
  EXPECT_NEAR(result.covariance[1], -result.covariance[0], 1e-9) << "200 - grey";
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
  EXPECT_NE(std::get<HelpSpec>(parse_command_line({"mnist", "--help"})).text.find("[default: 8; 1 to 99999]"),
            std::string::npos);
  EXPECT_NE(std::get<HelpSpec>(parse_command_line({})).text.find("Exit codes: 0 ok"), std::string::npos);
}

TEST(CommandLine, ImagesOfEverySource) {
  for (const Source* kind : all_sources()) {
    if (kind->has_pixels()) continue;
    const bool list = std::string(kind->name()) == "list";
    const std::vector<std::string> where = {kind->name(), "--train", "a#b", list ? "--root" : "--val",
                                            "c",          "--out",   "x"};
    const auto parse = [&where](std::vector<std::string> words) {
      words.insert(words.begin(), where.begin(), where.end());
      return std::get<PrepareSpec>(parse_command_line(words));
    };
    const PrepareSpec usual = parse({});
    EXPECT_EQ(usual.train, "a#b");  // no configuration file holds it
    EXPECT_EQ(usual.recipe.encoding, Encoding::jpeg);
    EXPECT_EQ(usual.recipe.sizes, std::vector<Index>{0}) << "as they are";
    EXPECT_EQ(parse({"--encoding", "raw"}).recipe.sizes, std::vector<Index>{256});
    EXPECT_EQ(parse({"--mean-image"}).recipe.encoding, Encoding::raw);
    EXPECT_EQ(usual.partitions, 0);
    EXPECT_EQ(usual.max_bytes, Index{1} << 30);
    EXPECT_EQ(usual.deadline.abort_seconds, 7200);
    EXPECT_EQ(usual.strict, Strict::no);
    EXPECT_EQ(parse({"--strict"}).strict, Strict::any);
    EXPECT_EQ(parse({"--strict=skipped"}).strict, Strict::skipped);
    EXPECT_EQ(parse({"--center-crop", "--color", "grey"}).recipe.fit, Fit::crop);
    const PrepareSpec jpeg =
        parse({"--sizes", "full,160", "--encoding", "jpeg", "--exts", "JPG,.png", "--memory=64", "--time-limit", "2h"});
    EXPECT_EQ(jpeg.recipe.sizes, (std::vector<Index>{0, 160}));
    EXPECT_EQ(jpeg.extensions, (std::vector<std::string>{".jpg", ".png"}));
    EXPECT_EQ(jpeg.memory_bytes, Index{64} << 20);
    EXPECT_EQ(jpeg.time_limit.limit_seconds, 7200);
    EXPECT_EQ(parse({"--encoding=jpeg"}).recipe.sizes, std::vector<Index>{0});
  }
}

TEST(CommandLine, Refusals) {
  const auto refuse = [](const std::vector<std::string>& words, const std::vector<std::string>& parts) {
    expect_error(Exit::usage, parts, [&] { parse_command_line(words); });
  };
  refuse({"cifar01"}, {"unknown kind 'cifar01'", "cifar10"});
  refuse({"tfrecord", "--source", "x"},
         {"does not read 'tfrecord'; write its encoded images", "'convoy-preprocess webdataset'"});
  refuse({"HDF5"}, {"does not read 'HDF5'; write its images as PNG files", "'convoy-preprocess folder"});
  refuse({"mnist", "--sorce", "x"}, {"'convoy-preprocess mnist' has no option '--sorce'", "did you mean '--source'?"});
  refuse({"mnist", "--partition", "3"},
         {"has no option '--partition'", "did you mean '--partitions'?"});  // not guessed
  refuse({"mnist", "--out", "x"}, {"no --source"});
  refuse({"mnist", "--source", "x"}, {"no --out"});
  refuse({"synthetic", "--out", "x", "--source", "y"}, {"'convoy-preprocess synthetic' has no option '--source'"});
  refuse({"synthetic", "--out", "x", "--samples", "many"}, {"many", "--samples"});
  refuse({"synthetic", "--out", "x", "--samples", "0"}, {"--samples 0 ('0' is out of range); allowed: 1 to"});
  refuse({"synthetic", "--out", "x", "--image-size", "32by32"},
         {"--image-size 32by32 (", "HEIGHTxWIDTH from 4 to 4096"});
  refuse({"synthetic", "--out", "x", "--image-size", "32x"}, {"--image-size 32x ("});
  refuse({"synthetic", "--out", "x", "--classes", "5000"},
         {"--classes 5000 ('5000' is out of range); allowed: 1 to 3360"});
  refuse({"synthetic", "--out", "x", "--seed", "-1"}, {"--seed -1 ('-1' is out of range); allowed: >= 0"});
  refuse({"synthetic", "--out", "x", "--partitions", "100000"}, {"--partitions 100000 ("});
  refuse({"synthetic", "y", "--out", "x"}, {"can't use 'y'"});
  refuse({"verify"}, {"no folder given"});
  refuse({"verify", "a", "--data", "b"}, {"two folders are given"});
  const auto refuse_images = [&refuse](std::vector<std::string> words, const std::vector<std::string>& parts) {
    const std::vector<std::string> folder = {"folder", "--source", "s", "--out", "x"};
    words.insert(words.begin(), folder.begin(), folder.end());
    refuse(words, parts);
  };
  refuse_images({"--encoding", "raw", "--sizes", "full"}, {"--sizes full (", "needs --encoding jpeg", "1 to 16384"});
  refuse_images({"--sizes", "32,32"}, {"has a size twice"});
  refuse_images({"--resize", "256"}, {"--resize 256", "give it as --sizes", "squash, crop"});
  refuse_images({"--encoding", ".jpg"}, {"--encoding .jpg", "use jpeg"});
  refuse_images({"--part", "3"}, {"no option '--part'; the ranks of mpirun -np N share the work"});
  refuse_images({"--nsplit", "3"}, {"no option '--nsplit'; use --partitions"});
  refuse_images({"--test-ratio", "0.1"}, {"use --train-ratio"});
  refuse_images({"--s3-bucket", "b"}, {"use --source s3://BUCKET/PREFIX"});
  refuse_images({"--exts", ","}, {"--exts , (',' names none)"});
  refuse_images({"--train-ratio", "0"}, {"--train-ratio 0 ('0' is out of range); allowed: > 0 and <= 1"});
  refuse_images({"--strict=maybe"}, {"allowed: any, skipped, no"});
  refuse_images({"--mean-image", "--encoding", "jpeg"}, {"--mean-image needs"});
  refuse_images({"--val", "v", "--train", "t"}, {"either --source (one place) or --train"});
  refuse_images({"--end-time", "tomorrow"}, {"--end-time tomorrow ("});
}

}  // namespace
}  // namespace convoy::preparation
