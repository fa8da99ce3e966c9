// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/hash.hpp"
#include "data/partition.hpp"
#include "data/stage.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/partitions.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

constexpr Index image_bytes = 3 * 5 * 2;

void expect_formula(const Dataset& dataset) {
  const Range range = dataset.range();
  for (Index sample = range.begin; sample < range.end(); ++sample) {
    EXPECT_EQ(dataset.id(sample), sample);
    EXPECT_EQ(dataset.label(sample), sample % 4);
    const std::uint8_t* image = dataset.images() + (sample - range.begin) * image_bytes;
    for (Index k = 0; k < image_bytes; ++k) ASSERT_EQ(image[k], formula_pixel(sample, k)) << sample << " " << k;
  }
}

TEST(ReadDatasetInfo, JoinsThePartitions) {
  const TempFolder folder;
  write_formula_split(folder.path(), "train", 3, 11);
  write_formula_split(folder.path(), "val", 1, 2);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  EXPECT_EQ(info.samples, 11);
  ASSERT_EQ(info.partitions.size(), 3U);
  EXPECT_EQ(info.partitions[0].samples, (Range{0, 4}));
  EXPECT_EQ(info.partitions[1].samples, (Range{4, 4}));
  EXPECT_EQ(info.partitions[2].samples, (Range{8, 3}));
  EXPECT_EQ(info.height, 3);
  EXPECT_EQ(info.width, 5);
  EXPECT_EQ(info.channels, 2);
  EXPECT_EQ(info.classes, 4);
  EXPECT_EQ(info.class_names[3], "west");
  EXPECT_EQ(info.mean, (std::vector<double>{100.5, 120.25}));
  EXPECT_EQ(info.std, (std::vector<double>{50, 60.125}));
  EXPECT_EQ(info.encoding, "raw");
  EXPECT_TRUE(has_split(folder.path(), "val"));
  EXPECT_FALSE(has_split(folder.path(), "test"));
}

TEST(ReadDatasetInfo, DigestIsOfTheContent) {
  const TempFolder a, b;
  write_formula_split(a.path(), "train", 2, 8);
  write_formula_split(b.path(), "train", 2, 8);
  EXPECT_EQ(read_dataset_info(a.path(), "train").digest, read_dataset_info(b.path(), "train").digest);
  // One other pixel: the seal doesn't cover it, but it covers its checksum.
  const Partition header = formula_header(b.path(), "train", 1, 2, 8);
  write_partition(header, [&](Index i, std::uint8_t* image) {
    for (Index k = 0; k < image_bytes; ++k) image[k] = formula_pixel(header.first + i, k);
    image[17] ^= static_cast<std::uint8_t>(i == 2 ? 1 : 0);
    return static_cast<std::int32_t>((header.first + i) % 4);
  });
  EXPECT_NE(read_dataset_info(a.path(), "train").digest, read_dataset_info(b.path(), "train").digest);
}

TEST(Dataset, AnyRangeOnAnyNumberOfThreads) {
  const TempFolder folder;
  write_formula_split(folder.path(), "train", 4, 23);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  for (const Range range : {Range{0, 23}, Range{0, 1}, Range{5, 1}, Range{5, 9}, Range{22, 1}, Range{11, 12}}) {
    for (const int threads : {1, 3, 8}) {
      const Dataset dataset(info, range, threads);
      EXPECT_EQ(dataset.range(), range);
      EXPECT_EQ(dataset.skipped(), 0);
      expect_formula(dataset);
    }
  }
  EXPECT_EQ(Dataset(info, {7, 0}, 2).range().count, 0);  // a rank without a replica
  EXPECT_THROW(Dataset(info, {20, 4}, 1), Error);
}

TEST(Dataset, MemoryIsAligned) {
  const TempFolder folder;
  write_formula_split(folder.path(), "train", 1, 9);
  const Dataset dataset(read_dataset_info(folder.path(), "train"), {3, 4}, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(dataset.images()) % 64, 0U);
}

/// Flips one bit in each of these samples of a split of two partitions with 6 samples each.
DatasetInfo damage(const TempFolder& folder, const std::vector<Index>& samples) {
  write_formula_split(folder.path(), "train", 2, 12);
  DatasetInfo info = read_dataset_info(folder.path(), "train");
  for (const Index sample : samples) {
    const PartitionInfo& part = info.partitions[sample < 6 ? 0 : 1];
    flip_byte(part.path,
              part.images_offset + static_cast<std::size_t>((sample - part.samples.begin) * image_bytes + 11));
  }
  return info;
}

TEST(Dataset, ADamagedSampleIsNamed) {
  const TempFolder folder;
  const DatasetInfo info = damage(folder, {8, 10});
  for (const int threads : {1, 4}) {
    expect_error(Exit::data, {"train-00001-of-00002.h5'", "sample 2 (id 8, partition 1) is damaged", "verify", "skip"},
                 [&] {
                   Dataset(info, {0, 12}, threads);
                 });
  }
  expect_formula(Dataset(info, {0, 8}, 2));  // others don't meet it
}

TEST(Dataset, SkippedSamplesAreReplacedByTheirPredecessor) {
  const TempFolder folder;
  const DatasetInfo info = damage(folder, {0, 1, 6, 7});
  const Dataset dataset(info, {0, 12}, 2, OnCorrupt::skip);
  EXPECT_EQ(dataset.skipped(), 4);
  const Index sources[] = {2, 2, 2, 3, 4, 5, 5, 5, 8, 9, 10, 11};  // at the start: the first whole sample
  for (Index sample = 0; sample < 12; ++sample) {
    const Index source = sources[sample];
    EXPECT_EQ(dataset.id(sample), source);
    EXPECT_EQ(dataset.label(sample), source % 4);
    for (Index k = 0; k < image_bytes; ++k) {
      EXPECT_EQ(dataset.images()[sample * image_bytes + k], formula_pixel(source, k));
    }
  }
  // Nothing whole to take instead.
  expect_error(Exit::data, {"sample 0 (id 6, partition 1) is damaged"}, [&] {
    Dataset(info, {6, 2}, 1, OnCorrupt::skip);
  });
}

/// What stored() gives, sample by sample.
void expect_stored(const Dataset& dataset, const std::vector<Index>& wanted) {
  std::vector<std::uint8_t> scratch;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Index sample = dataset.range().begin + static_cast<Index>(i);
    std::string fault;
    Index from = sample;
    auto stored = dataset.stored(from, scratch, fault);
    while (!fault.empty()) {
      from = dataset.stand_in(sample, from, fault);
      fault.clear();
      stored = dataset.stored(from, scratch, fault);
    }
    ASSERT_EQ(static_cast<Index>(stored.size()), image_bytes);
    ASSERT_EQ(dataset.label(from), wanted[i] % 4);
    for (Index k = 0; k < image_bytes; ++k)
      ASSERT_EQ(stored[static_cast<std::size_t>(k)], formula_pixel(wanted[i], k)) << sample;
  }
}

TEST(Dataset, SamplesAreTheSameInMemoryAndInFiles) {
  const TempFolder folder;
  write_formula_split(folder.path(), "train", 4, 23);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  for (const Range range : {Range{0, 23}, Range{5, 9}, Range{22, 1}}) {
    std::vector<Index> wanted;
    for (Index i = range.begin; i < range.end(); ++i) wanted.push_back(i);
    const Dataset memory(info, range, {.keep = Keep::memory}), files(info, range, {.keep = Keep::files});
    expect_stored(memory, wanted);
    expect_stored(files, wanted);
    EXPECT_NE(memory.images(), nullptr);
    EXPECT_EQ(files.images(), nullptr);
    EXPECT_EQ(memory.memory_bytes() - files.memory_bytes(), range.count * (image_bytes - 16));
  }
}

// Samples 0, 4 and 5 of twelve are damaged after the files were opened.
TEST(Dataset, DamageFoundWhileTrainingIsNamedOrSkipped) {
  const TempFolder folder;
  write_formula_split(folder.path(), "train", 3, 12);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  const Dataset strict(info, {0, 12}, {.keep = Keep::files});
  const Dataset lenient(info, {0, 12}, {.on_corrupt = OnCorrupt::skip, .keep = Keep::files});
  for (const Index sample : {0, 4, 5}) {
    const PartitionInfo& part = info.partitions[static_cast<std::size_t>(sample / 4)];
    flip_byte(part.path, part.images_offset + static_cast<std::uint64_t>((sample % 4) * image_bytes + 3));
  }
  expect_error(Exit::data, {"train-00000-of-00003.h5': sample 0 (id 0, partition 0) is damaged", "--on-corrupt skip"},
               [&] { expect_stored(strict, {0}); });
  expect_stored(lenient, {1, 1, 2, 3, 3, 3, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(lenient.skipped(), 3);
  expect_stored(lenient, {1, 1, 2, 3, 3, 3, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(lenient.skipped(), 3) << "counted once";
}

TEST(Stage, CopiesWhatARangeNeedsOnceAndVerifiesIt) {
  const TempFolder folder, local;
  write_formula_split(folder.path(), "train", 4, 23);
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  DatasetInfo staged = info;
  stage_partitions(staged, {7, 9}, local.path());
  EXPECT_EQ(staged.partitions[0].path, info.partitions[0].path) << "not needed";
  EXPECT_EQ(staged.partitions[3].path, info.partitions[3].path);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_NE(staged.partitions[i].path, info.partitions[i].path);
    EXPECT_EQ(read_bytes(staged.partitions[i].path), read_bytes(info.partitions[i].path));
  }
  expect_stored(Dataset(staged, {7, 9}, {.keep = Keep::files}), {7, 8, 9, 10, 11, 12, 13, 14, 15});

  // A damaged copy is made again, a whole one is kept.
  const auto written = std::filesystem::last_write_time(staged.partitions[2].path);
  flip_byte(staged.partitions[1].path, 700);
  DatasetInfo again = info;
  stage_partitions(again, {7, 9}, local.path());
  EXPECT_EQ(read_bytes(again.partitions[1].path), read_bytes(info.partitions[1].path));
  EXPECT_EQ(std::filesystem::last_write_time(again.partitions[2].path), written);
}

TEST(Stage, ADamagedOriginalIsNotCopied) {
  const TempFolder folder, local;
  write_formula_split(folder.path(), "train", 2, 12);
  DatasetInfo info = read_dataset_info(folder.path(), "train");
  flip_byte(info.partitions[1].path, static_cast<std::size_t>(info.partitions[1].images_offset) + 2 * image_bytes);
  expect_error(Exit::data, {"sample 2 of the copy", "train-00001-of-00002.h5' or the copy's disk"}, [&] {
    stage_partitions(info, {0, 12}, local.path());
  });
}

/// 400 samples whose labels are `label(id)`.
template <class Label>
Dataset labelled(const std::string& folder, const Label& label) {
  const Partition header = formula_header(folder, "train", 0, 1, 400);
  write_partition(header, [&](Index id, std::uint8_t* image) {
    std::fill_n(image, header.image_bytes(), std::uint8_t{0});
    return static_cast<std::int32_t>(label(id));
  });
  return {read_dataset_info(folder, "train"), {0, 400}, 1};
}

TEST(ClassOrder, SortedSamplesAreSeen) {
  const TempFolder sorted, nearly, rounds, rare;
  EXPECT_TRUE(is_sorted_by_class(labelled(sorted.path(), [](Index id) { return id / 100; })));
  EXPECT_TRUE(is_sorted_by_class(labelled(nearly.path(), [](Index id) { return id % 20 == 0 ? id % 4 : id / 100; })));
  EXPECT_FALSE(is_sorted_by_class(
      labelled(rounds.path(), [](Index id) { return mix_bits(static_cast<std::uint64_t>(id)) % 4; })));
  EXPECT_FALSE(is_sorted_by_class(labelled(rare.path(), [](Index id) { return id % 40 == 7 ? 1 : 0; })))
      << "few of one class";
  const DatasetInfo info = read_dataset_info(sorted.path(), "train");
  EXPECT_TRUE(is_sorted_by_class(Dataset(info, {150, 150}, 1))) << "a part of it";
  EXPECT_TRUE(is_sorted_by_class(Dataset(info, {100, 100}, 1))) << "one class alone";
  EXPECT_FALSE(is_sorted_by_class(Dataset(info, {100, 99}, 1))) << "too few to tell";
}

TEST(Dataset, PartitionsPastTwoToThe31) {
  // A sparse file: 2.1 GiB of zeros, of which only the last samples are written and read.
  const TempFolder folder;
  constexpr Index samples = (Index{1} << 31) / 3072 + 30000;
  Partition header = formula_header(folder.path(), "train", 0, 1, samples);
  header.height = header.width = 32;
  header.channels = 3;
  header.mean = header.std = {1, 2, 3};
  std::uint64_t images = 0, labels = 0, ids = 0, crc = 0;
  {
    Hdf5File file(header.path, Hdf5File::Access::create);
    for (const auto& [name, value] : {std::pair{"format_version", Index{1}},
                                      {"partition", Index{0}},
                                      {"partitions", Index{1}},
                                      {"first_sample", Index{0}},
                                      {"samples", samples},
                                      {"split_samples", samples},
                                      {"classes", Index{4}},
                                      {"seed", Index{7}}}) {
      file.attribute(name, value);
    }
    for (const char* name : {"source", "source_digest", "parameters"}) file.attribute(name, std::string("test"));
    file.attribute("encoding", std::string("raw"));
    file.attribute("split", std::string("train"));
    file.attribute("class_names", header.class_names);
    file.attribute("mean", header.mean);
    file.attribute("std", header.std);
    labels = file.reserve("/labels", {Element::i32, {samples}});
    ids = file.reserve("/ids", {Element::i64, {samples}});
    crc = file.reserve("/crc", {Element::u32, {samples}});
    images = file.reserve("/images", {Element::u8, {samples, 32, 32, 3}});
    file.close();
  }
  const auto last = static_cast<std::uint64_t>(samples - 1);
  {
    File file(header.path, File::Access::update);
    const std::vector<std::uint8_t> image(3072, 77);
    const std::uint32_t sum = crc32c(image.data(), image.size());
    const std::int32_t label = 3;
    file.write_at(image.data(), image.size(), images + last * 3072);
    file.write_at(&sum, sizeof sum, crc + last * 4);
    file.write_at(&label, sizeof label, labels + last * 4);
    file.write_at(&last, sizeof last, ids + last * 8);
  }
  seal_file(header.path, images, static_cast<std::uint64_t>(samples) * 3072);
  const Dataset dataset(read_dataset_info(folder.path(), "train"), {samples - 1, 1}, 2);
  EXPECT_EQ(dataset.label(samples - 1), 3);
  EXPECT_EQ(dataset.id(samples - 1), samples - 1);
  EXPECT_EQ(dataset.images()[3071], 77);
}

}  // namespace
}  // namespace convoy
