// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_bytes.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace convoy {
namespace {

DatasetInfo example() {
  DatasetInfo info;
  info.folder = "/data/pets";
  info.split = "train";
  info.partitions = {{"/data/pets/train-00000-of-00002.h5", {0, 7}, 11, 12, 13, 14, 15, 16, 17, 18},
                     {"/data/pets/train-00001-of-00002.h5", {7, 5}, 21, 22, 23, 24, 25, 26, 27, 28}};
  info.samples = 12;
  info.height = 3;
  info.width = 4;
  info.channels = 2;
  info.classes = 2;
  info.class_names = {"cat", ""};
  info.labels_as = {1, -1};
  info.mean = {0.1, 128.25};
  info.std = {1.0 / 3, 64};
  info.covariance = {4, -0.5, 4096};
  info.mean_image = {1.5F, -0.0F};
  info.source = "folder";
  info.encoding = "raw";
  info.digest = 0xfedcba9876543210ULL;
  return info;
}

TEST(DatasetBytes, ComeBackAsTheyWere) {
  const DatasetInfo from = example(), to = dataset_info_of(to_bytes(from));
  EXPECT_EQ(to_bytes(to), to_bytes(from)) << "every member that is written";
  EXPECT_EQ(to.folder, from.folder);
  EXPECT_EQ(to.split, from.split);
  ASSERT_EQ(to.partitions.size(), 2U);
  EXPECT_EQ(to.partitions[1].path, from.partitions[1].path);
  EXPECT_EQ(to.partitions[1].samples, from.partitions[1].samples);
  EXPECT_EQ(to.partitions[1].images_offset, 21U);
  EXPECT_EQ(to.partitions[1].labels_offset, 22U);
  EXPECT_EQ(to.partitions[1].ids_offset, 23U);
  EXPECT_EQ(to.partitions[1].crc_offset, 24U);
  EXPECT_EQ(to.partitions[1].offsets_offset, 25U);
  EXPECT_EQ(to.partitions[1].dimensions_offset, 26U);
  EXPECT_EQ(to.partitions[1].stored_bytes, 27);
  EXPECT_EQ(to.partitions[1].seal_crc, 28U);
  EXPECT_EQ(to.samples, 12);
  EXPECT_EQ(to.image_bytes(), 24);
  EXPECT_EQ(to.classes, 2);
  EXPECT_EQ(to.class_names, from.class_names);
  EXPECT_EQ(to.labels_as, from.labels_as);
  EXPECT_EQ(to.mean, from.mean);
  EXPECT_EQ(to.std, from.std);
  EXPECT_EQ(to.covariance, from.covariance);
  EXPECT_EQ(to.mean_image, from.mean_image);
  EXPECT_EQ(to.source, "folder");
  EXPECT_EQ(to.encoding, "raw");
  EXPECT_EQ(to.digest, from.digest);
}

TEST(DatasetBytes, EndWhereTheyShould) {
  const std::string bytes = to_bytes(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    expect_error(Exit::internal, {"end early"}, [&] { dataset_info_of(std::string_view(bytes).substr(0, size)); });
  expect_error(Exit::internal, {"left over"}, [&] { dataset_info_of(bytes + "x"); });
}

TEST(DatasetBytes, OfGroupsComeBackAsTheyWere) {
  const std::vector<ShapeGroup> from{{{8, 16}, {3, 5}}, {{16, 8}, {}}, {{8, 8}, {0}}};
  const std::string bytes = to_bytes(from);
  const std::vector<ShapeGroup> to = shape_groups_of(bytes);
  ASSERT_EQ(to.size(), from.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    EXPECT_EQ(to[i].size.height, from[i].size.height);
    EXPECT_EQ(to[i].size.width, from[i].size.width);
    EXPECT_EQ(to[i].samples, from[i].samples);
  }
  EXPECT_TRUE(shape_groups_of(to_bytes(std::vector<ShapeGroup>{})).empty());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    expect_error(Exit::internal, {"end early"}, [&] { shape_groups_of(std::string_view(bytes).substr(0, size)); });
  expect_error(Exit::internal, {"left over"}, [&] { shape_groups_of(bytes + "x"); });
}

}  // namespace
}  // namespace convoy
