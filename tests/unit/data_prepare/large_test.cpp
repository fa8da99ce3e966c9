// SPDX-License-Identifier: Apache-2.0
// Partitions of more than 2^31 and 2^32 bytes: no size in between is 32 bits wide. What isn't written of them is a hole
// of zeros, so they take little room.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "data/dataset.hpp"
#include "io/file.hpp"
#include "io/seal.hpp"
#include "preprocess/partition_writer.hpp"
#include "tests/support/partitions.hpp"
#include "tests/support/temp_folder.hpp"

namespace convoy::preparation {
namespace {

constexpr Index side = 2048, samples = 352;  // 12 MiB each
constexpr Index image_bytes = side * side * 3;

std::vector<std::uint8_t> marked(Index row) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(image_bytes));
  bytes.front() = static_cast<std::uint8_t>(1 + row % 200);
  bytes.back() = 77;
  return bytes;
}

/// Of pixels, or of `files` of that length; the rows named are marked, the others zeros.
Partition write_large(const std::string& folder, const char* encoding, std::span<const Index> marks) {
  Partition header = formula_header(folder, "train", 0, 1, samples);
  header.encoding = encoding;
  header.channels = 3;
  header.height = header.width = header.is_jpeg() ? 0 : side;
  header.mean = header.std = {1, 1, 1};
  SampleRows rows;
  const auto zeros = std::vector<std::uint8_t>(static_cast<std::size_t>(image_bytes));
  rows.crc.assign(static_cast<std::size_t>(samples), crc32c(zeros.data(), zeros.size()));
  for (Index i = 0; i < samples; ++i) {
    rows.labels.push_back(static_cast<std::int32_t>(i % 4));
    rows.dimensions.insert(rows.dimensions.end(), 2, static_cast<std::int32_t>(side));
    if (header.is_jpeg()) rows.offsets.push_back(i * image_bytes);
  }
  if (header.is_jpeg()) rows.offsets.push_back(samples * image_bytes);
  PartitionWriter writer(header, std::move(rows));
  for (const Index row : marks) {
    const auto bytes = marked(row);
    writer.rows().crc[static_cast<std::size_t>(row)] = crc32c(bytes.data(), bytes.size());
    writer.put(static_cast<std::uint64_t>(row * image_bytes), bytes.data(), bytes.size());
  }
  writer.finish();
  return read_partition(header.path);
}

void expect_readable(const char* encoding) {
  const TempFolder folder;
  // The last sample before 2^31, the one across it, those around 2^32, the last.
  const std::array<Index, 6> marks{0,
                                   (Index{1} << 31) / image_bytes - 1,
                                   (Index{1} << 31) / image_bytes,
                                   (Index{1} << 32) / image_bytes - 1,
                                   (Index{1} << 32) / image_bytes,
                                   samples - 1};
  const Partition p = write_large(folder.path(), encoding, marks);
  ASSERT_GT(p.stored_bytes, Index{1} << 32);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  const Dataset set(info, {0, samples}, ReadSpec{.threads = 1, .keep = Keep::files});
  std::vector<std::uint8_t> scratch;
  for (const Index row : marks) {
    std::string fault;
    const auto stored = set.stored(row, scratch, fault);
    EXPECT_EQ(fault, "");
    const auto expected = marked(row);
    EXPECT_TRUE(std::equal(stored.begin(), stored.end(), expected.begin(), expected.end())) << "sample " << row;
  }
  // Of the range of one rank, in memory.
  const Dataset last(info, {samples - 2, 2}, 1);
  std::string fault;
  EXPECT_EQ(last.stored(samples - 1, scratch, fault).front(), marked(samples - 1).front());
}

TEST(LargePartition, Pixels) { expect_readable("raw"); }
TEST(LargePartition, Files) { expect_readable("jpeg"); }

TEST(LargePartition, IsCheckedToItsEnd) {
  const TempFolder folder;
  const std::array<Index, 1> marks{samples - 1};
  const Partition p = write_large(folder.path(), "raw", marks);
  const auto last_byte = p.images_offset + static_cast<std::uint64_t>(p.stored_bytes) - 1;
  File(p.path, File::Access::update).write_at("x", 1, last_byte);
  const Dataset set(read_dataset_info(folder.path(), "train"), {0, samples},
                    ReadSpec{.threads = 1, .keep = Keep::files});
  std::vector<std::uint8_t> scratch;
  std::string fault;
  set.stored(samples - 1, scratch, fault);
  EXPECT_NE(fault, "");
}

}  // namespace
}  // namespace convoy::preparation
