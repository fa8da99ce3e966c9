// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

const std::vector<std::string> options{"lr", "lr-schedule", "local-steps", "batch-size", "label-smoothing", "momentum"};

TEST(Nearest, FindsWordWithOneWrongLetter) {
  EXPECT_EQ(nearest("momentom", options), "momentum");
  EXPECT_EQ(nearest("bath-size", options), "batch-size");
  EXPECT_EQ(nearest("locall-steps", options), "local-steps");
}

TEST(Nearest, CountsSwappedNeighboursOnce) {
  // ab -> ba is one swap; two replacements would tie with `abcx` and the first would win.
  EXPECT_EQ(nearest("acbdef", {"axydef", "abcdef"}), "abcdef");
  EXPECT_EQ(nearest("batch-szie", {"batch-sxxe", "batch-size"}), "batch-size");
}

TEST(Nearest, TakesUnderscoreAndCaseAsTheSame) {
  EXPECT_EQ(nearest("Batch_Size", {"batch-sizes", "batch-size"}), "batch-size");
}

TEST(Nearest, PrefersFewestEdits) {
  EXPECT_EQ(nearest("resnet51", {"resnet1001", "resnet152", "resnet50"}), "resnet50");
}

TEST(Nearest, FirstOfEqualsWins) { EXPECT_EQ(nearest("resnet5", {"resnet50", "resnet56"}), "resnet50"); }

TEST(Nearest, ShortWordsDifferByOneEditAndBeginAlike) {
  EXPECT_EQ(nearest("drop", {"crop"}), "");
  EXPECT_EQ(nearest("adam", {"aa"}), "");
  EXPECT_EQ(nearest("freeze", {"resize"}), "");
  EXPECT_EQ(nearest("rain", {"train"}), "train");
  EXPECT_EQ(nearest("rtain", {"train"}), "train");
}

TEST(Nearest, ComparesTheWordsOfANameOneByOne) {
  EXPECT_EQ(nearest("min-np", {"min-lr"}), "") << "np is another word than lr";
  EXPECT_EQ(nearest("train-steps", {"trace-steps"}), "");
  EXPECT_EQ(nearest("min_crop_size", {"min-crop-scale"}), "");
  EXPECT_EQ(nearest("no-tensorbord", {"no-tensorboard"}), "no-tensorboard");
  EXPECT_EQ(nearest("batchsize", {"batch-size"}), "batch-size") << "a hyphen may be missing";
}

TEST(Nearest, StaysSilentWhereNothingIsClose) {
  EXPECT_EQ(nearest("vgg16", {"mlp", "lenet", "resnet50"}), "");
  EXPECT_EQ(nearest("xy", {"lr"}), "") << "replacing every letter is no typing error";
  EXPECT_EQ(nearest("momentum", {}), "");
  EXPECT_EQ(nearest("", options), "");
}

}  // namespace
}  // namespace convoy
