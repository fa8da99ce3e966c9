// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "preprocess/options.hpp"
#include "preprocess/order.hpp"
#include "preprocess/statistics.hpp"
#include "support/expect_error.hpp"

namespace convoy::preparation {
namespace {

/// Samples named by `prefix` and number, whatever the order in which they are listed.
class Listed : public Source {
 public:
  Listed(Index count, bool reversed) : count_(count), reversed_(reversed) {
    info_ = {"listed", "none", 2, 2, 2, {"a"}};
  }
  const SourceInfo& info() const override { return info_; }
  Index samples(Split) const override { return count_; }
  std::string name(Split, Index sample) const override { return "file/" + std::to_string(number(sample)); }
  std::int32_t read(Split, Index sample, std::uint8_t* image) const override {
    for (Index k = 0; k < 8; ++k) image[k] = static_cast<std::uint8_t>(number(sample) * 13 + k * k);
    return 0;
  }
  Index number(Index sample) const { return reversed_ ? count_ - 1 - sample : sample; }

 private:
  Index count_;
  bool reversed_;
  SourceInfo info_;
};

TEST(ShuffleByName, IsAPermutationThatSeedAndNamesDecide) {
  const Listed source(1000, false), reversed(1000, true);
  const auto order = shuffle_by_name(source, Split::train, 1);
  EXPECT_EQ(std::set<Index>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999);
  EXPECT_NE(order, shuffle_by_name(source, Split::train, 2));
  const auto other = shuffle_by_name(reversed, Split::train, 1);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], reversed.number(other[i]));
}

TEST(ShuffleByName, MixesSortedInput) {
  // Class = number / 100: any hundred of the shuffled order holds about ten of each.
  const auto order = shuffle_by_name(Listed(1000, false), Split::train, 1);
  for (std::size_t begin = 0; begin < 1000; begin += 100) {
    std::vector<int> counts(10);
    for (std::size_t i = begin; i < begin + 100; ++i) ++counts[static_cast<std::size_t>(order[i] / 100)];
    double chi = 0;
    for (const int count : counts) chi += std::pow(count - 10.0, 2) / 10;
    EXPECT_LT(chi, 30) << begin;  // 9 degrees of freedom: p < 0.0005
  }
}

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

TEST(Statistics, EqualADoubleSumAndAddUpOverRanges) {
  const Listed source(37, false);
  const PixelSums all = sum_pixels(source, {0, 37}, true);
  PixelSums joined = sum_pixels(source, {0, 20}, true);
  const PixelSums rest = sum_pixels(source, {20, 17}, true);
  for (std::size_t c = 0; c < 2; ++c) {
    joined.sum[c] += rest.sum[c];
    joined.squares[c] += rest.squares[c];
  }
  EXPECT_EQ(joined.sum, all.sum);
  EXPECT_EQ(joined.squares, all.squares);
  const Normalisation result = normalisation_of(all, 37 * source.info().height * source.info().width);
  std::uint8_t image[8];
  for (int c = 0; c < 2; ++c) {
    double sum = 0, squares = 0;
    for (Index i = 0; i < 37; ++i) {
      source.read(Split::train, i, image);
      for (int k = c; k < 8; k += 2) sum += image[k];
    }
    const double mean = sum / (37 * 4);
    for (Index i = 0; i < 37; ++i) {
      source.read(Split::train, i, image);
      for (int k = c; k < 8; k += 2) squares += (image[k] - mean) * (image[k] - mean);
    }
    EXPECT_DOUBLE_EQ(result.mean[static_cast<std::size_t>(c)], mean);
    EXPECT_NEAR(result.std[static_cast<std::size_t>(c)], std::sqrt(squares / (37 * 4)), 1e-12);
  }
  double first = 0;
  for (Index i = 0; i < 37; ++i) {
    source.read(Split::train, i, image);
    first += image[5];
  }
  ASSERT_EQ(result.mean_image.size(), 8U);
  EXPECT_FLOAT_EQ(result.mean_image[5], static_cast<float>(first / 37));
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
  EXPECT_EQ(spec.kind, DataKind::synthetic);
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
