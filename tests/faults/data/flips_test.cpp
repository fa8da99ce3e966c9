// SPDX-License-Identifier: Apache-2.0
// Single bits that flip anywhere in partition files: `verify` and one epoch of reading each find every one. A crash
// ends the test, and so does a flip that takes long. CONVOY_FLIPS=10000 makes more of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "data/loader.hpp"
#include "image/jpeg.hpp"
#include "io/seal.hpp"
#include "preprocess/output.hpp"
#include "preprocess/partition_writer.hpp"
#include "tests/support/partitions.hpp"
#include "tests/support/temp_folder.hpp"

namespace convoy::preparation {
namespace {

constexpr Index samples = 22, partitions = 3;

/// JPEG files of several sizes, with names and dimensions: every table that a partition can have.
void write_jpeg_partition(Partition header) {
  header.encoding = "jpeg";
  header.height = header.width = 0;
  header.channels = 3;
  header.mean = header.std = {100, 110, 120};
  SampleRows rows;
  std::vector<std::vector<std::uint8_t>> files;
  rows.offsets = {0};
  for (Index i = 0; i < header.samples; ++i) {
    const Index id = header.first + i, height = 9 + id % 5, width = 11 + id % 3;
    Image image;
    image.reshape(height, width, 3);
    for (std::size_t k = 0; k < image.pixels.size(); ++k)
      image.pixels[k] = formula_pixel(id, static_cast<Index>(k / 9));
    encode_jpeg(image.view(), 90, files.emplace_back());
    rows.labels.push_back(static_cast<std::int32_t>(id % header.classes));
    rows.crc.push_back(crc32c(files.back().data(), files.back().size()));
    rows.offsets.push_back(rows.offsets.back() + static_cast<Index>(files.back().size()));
    rows.dimensions.push_back(static_cast<std::int32_t>(height));
    rows.dimensions.push_back(static_cast<std::int32_t>(width));
    rows.names.push_back("image " + std::to_string(id));
  }
  const std::vector<Index> offsets = rows.offsets;
  PartitionWriter writer(header, std::move(rows));
  for (std::size_t i = 0; i < files.size(); ++i) {
    writer.put(static_cast<std::uint64_t>(offsets[i]), files[i].data(), files[i].size());
  }
  writer.finish();
}

/// What training does with the samples of a folder in one epoch.
void read_epoch(const std::string& folder, Keep keep, int workers) {
  const DatasetInfo info = read_dataset_info(folder, "train");
  const Dataset set(info, {0, info.samples}, ReadSpec{.threads = 1, .keep = keep});
  LoaderSpec spec;
  spec.order = {.samples = info.samples, .batch = 8, .seed = 5};
  spec.augment = {.stored = info.height == 0 ? Stored::files : Stored::pixels,
                  .source_height = info.height,
                  .source_width = info.width,
                  .channels = info.channels,
                  .height = 3,
                  .width = 3,
                  .crop = Crop::window};
  spec.workers = workers;
  spec.resident = keep == Keep::memory && can_be_resident(set, spec.augment) ? 0 : -1;
  Loader loader(set, spec);
  const EpochOrder& order = loader.begin_epoch(0, 0);
  for (Index step = 0; step < order.steps(); ++step) loader.next(step, 0);
}

bool verify_finds_faults(const std::string& path) {
  try {
    return !find_faults(read_partition(path), 3).empty();
  } catch (const Error& e) {
    return e.code() == Exit::data;
  }
}

bool epoch_fails(const std::string& folder, Keep keep, int workers) {
  try {
    read_epoch(folder, keep, workers);
    return false;
  } catch (const Error& e) {
    return e.code() == Exit::data;
  }
}

class FlippedFile {
 public:
  FlippedFile(const std::string& path, off_t at, unsigned bit)
      : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)), at_(at), mask_(static_cast<std::uint8_t>(1U << bit)) {
    flip();
  }
  ~FlippedFile() {
    flip();
    ::close(file_);
  }
  FlippedFile(const FlippedFile&) = delete;
  FlippedFile& operator=(const FlippedFile&) = delete;

 private:
  void flip() const {
    std::uint8_t byte = 0;
    const bool read = ::pread(file_, &byte, 1, at_) == 1;
    byte ^= mask_;
    if (!read || ::pwrite(file_, &byte, 1, at_) != 1) std::abort();
  }
  int file_;
  off_t at_;
  std::uint8_t mask_;
};

Index flips_wanted() {
  const char* text = std::getenv("CONVOY_FLIPS");
  return text != nullptr ? std::atol(text) : 200;
}

void flip_bits(const std::string& folder, std::uint64_t seed) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  ASSERT_EQ(paths.size(), static_cast<std::size_t>(partitions));
  for (const auto& path : paths) ASSERT_TRUE(find_faults(read_partition(path), 3).empty());
  for (const Keep keep : {Keep::memory, Keep::files}) ASSERT_NO_THROW(read_epoch(folder, keep, 1));
  Index in_samples = 0;
  const Index flips = flips_wanted() / 2;
  for (Index i = 0; i < flips; ++i) {
    Random random(seed, Stream::synthetic, 0, static_cast<std::uint64_t>(i));
    const std::string& path = paths[static_cast<std::size_t>(random.below(partitions))];
    const Partition whole = read_partition(path);
    const auto bytes = static_cast<Index>(std::filesystem::file_size(path));
    // Half of them in what describes the samples, which is small in a large file.
    Index at = random.below(bytes);
    const auto begin = static_cast<Index>(whole.images_offset), end = begin + whole.stored_bytes;
    if (i % 2 == 0 && at >= begin && at < end) at = at - begin < begin ? at - begin : begin - 1;
    in_samples += at >= begin && at < end ? 1 : 0;
    const auto bit = static_cast<unsigned>(random.below(8));
    const FlippedFile flipped(path, at, bit);
    alarm(20);
    EXPECT_TRUE(verify_finds_faults(path)) << path << ": bit " << bit << " of byte " << at;
    EXPECT_TRUE(epoch_fails(folder, i % 4 < 2 ? Keep::memory : Keep::files, static_cast<int>(i % 2)))
        << path << ": bit " << bit << " of byte " << at;
  }
  alarm(0);
  for (const Keep keep : {Keep::memory, Keep::files}) ASSERT_NO_THROW(read_epoch(folder, keep, 1));
  std::printf("%ld flipped bits, %ld of them in samples\n", static_cast<long>(flips), static_cast<long>(in_samples));
}

TEST(Flips, OfPixelsAreFound) {
  const TempFolder folder;
  for (Index n = 0; n < partitions; ++n) {
    Partition header = formula_header(folder.path(), "train", n, partitions, samples);
    header.height = 48;
    header.width = 40;
    write_formula_partition(header);
  }
  flip_bits(folder.path(), 1);
}

TEST(Flips, OfJpegFilesAreFound) {
  const TempFolder folder;
  for (Index n = 0; n < partitions; ++n)
    write_jpeg_partition(formula_header(folder.path(), "train", n, partitions, samples));
  flip_bits(folder.path(), 2);
}

}  // namespace
}  // namespace convoy::preparation
