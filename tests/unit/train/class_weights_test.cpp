// SPDX-License-Identifier: Apache-2.0
#include "train/class_weights.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace convoy {
namespace {

DatasetInfo set_of(std::vector<std::string> names) {
  DatasetInfo info;
  info.folder = "pets";
  info.classes = static_cast<Index>(names.size());
  info.class_names = std::move(names);
  return info;
}

TEST(ClassWeights, CountsLabelsOfClasses) {
  const std::vector<std::int32_t> labels{0, 2, 2, -1, 0, 0};
  EXPECT_EQ(count_classes(labels, 4), (std::vector<Index>{3, 0, 2, 0}));
}

/// 60 images in 4 classes, one of them empty: 60 / (3 * count).
TEST(ClassWeights, AutomaticOnesAreInverseShares) {
  const std::vector<Index> counts{40, 10, 0, 10};
  EXPECT_EQ(loss_weights({.automatic = true, .values = {}}, counts, set_of({"a", "b", "c", "d"})),
            (std::vector<float>{0.5F, 2, 0, 2}));
}

/// (10 * 1 + 30 * 4) / 40 = 3.25, whatever the numbers' scale.
TEST(ClassWeights, GivenOnesAreOneOnAverageOverTheImages) {
  const std::vector<Index> counts{10, 30};
  for (const double scale : {1.0, 100.0}) {
    const auto weights = loss_weights({.automatic = false, .values = {scale, 4 * scale}}, counts, set_of({"a", "b"}));
    EXPECT_EQ(weights, (std::vector<float>{static_cast<float>(1 / 3.25), static_cast<float>(4 / 3.25)}));
  }
  EXPECT_TRUE(loss_weights({}, counts, set_of({"a", "b"})).empty());
}

TEST(ClassWeights, WhatDoesNotFitTheSetIsRefused) {
  const std::vector<Index> counts{10, 30, 0};
  const DatasetInfo info = set_of({"ant", "bee", "cat"});
  expect_error(Exit::usage,
               {"--class-weights has 2 numbers", "'pets' 3 classes ('ant' to 'cat')", "one number for each class"},
               [&] {
                 loss_weights({.automatic = false, .values = {1, 2}}, counts, info);
               });
  expect_error(Exit::usage, {"gives 0 to every class that has images in 'pets'", "give one of them more"}, [&] {
    loss_weights({.automatic = false, .values = {0, 0, 1}}, counts, info);
  });
}

TEST(ClassWeights, AFileIsReadAsAList) {
  EXPECT_EQ(weights_of_file("# of three classes\n1.5, 2\n\n 3e-1 # the last\n"), "1.5,2,3e-1");
  EXPECT_EQ(weights_of_file(""), "");
  for (const char* list : {"auto", "1,2,3", "0.5", "1e-3,+2"}) EXPECT_FALSE(names_weights_file(list)) << list;
  for (const char* file : {"weights.txt", "./1", "automatic"}) EXPECT_TRUE(names_weights_file(file)) << file;
}

}  // namespace
}  // namespace convoy
