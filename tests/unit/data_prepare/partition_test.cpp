// SPDX-License-Identifier: Apache-2.0
#include "data/partition.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "preprocess/output.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/partitions.hpp"
#include "support/temp_folder.hpp"

namespace convoy::preparation {
namespace {

TEST(PartitionName, RoundTripAndRefusals) {
  EXPECT_EQ(partition_file_name("train", 3, 8), "train-00003-of-00008.h5");
  const PartitionName name = parse_partition_name("train-00003-of-00008.h5");
  EXPECT_EQ(name.split, "train");
  EXPECT_EQ(name.number, 3);
  EXPECT_EQ(name.partitions, 8);
  EXPECT_EQ(parse_partition_name("my-val-00000-of-00001.h5").split, "my-val");
  for (const char* other : {"train-00003-of-00008.h5.tmp", "train-3-of-8.h5", "train-0000x-of-00008.h5", "last.h5", "",
                            "-00003-of-00008.h5", "train-00003_of-00008.h5"}) {
    EXPECT_EQ(parse_partition_name(other).partitions, 0) << other;
  }
}

TEST(Partition, OfANewerProgramIsNotDamaged) {
  const TempFolder folder;
  const std::string path = folder / "train-00000-of-00001.h5";
  for (const auto& [version, said] : {std::pair{Index{2}, "a newer Convoy wrote it; use the newer program, or prepare"},
                                      {Index{0}, "another Convoy wrote it; prepare the set again"}}) {
    {
      Hdf5File file(path, Hdf5File::Access::create);
      file.attribute("format_version", version);
      file.close();
    }
    seal_file(path);
    try {
      read_partition(path);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(said), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find("verify"), std::string::npos) << e.what();
    }
  }
}

TEST(Partition, ReadsBackWhatWasWritten) {
  const TempFolder folder;
  Partition written = formula_header(folder.path(), "train", 1, 3, 10);
  written.mean_image.resize(30, 0.25F);
  write_formula_partition(written);
  const Partition p = read_partition(written.path);
  EXPECT_EQ(p.split, "train");
  EXPECT_EQ(p.number, 1);
  EXPECT_EQ(p.partitions, 3);
  EXPECT_EQ(p.first, 4);  // 4 + 3 + 3
  EXPECT_EQ(p.samples, 3);
  EXPECT_EQ(p.split_samples, 10);
  EXPECT_EQ(p.height, 3);
  EXPECT_EQ(p.width, 5);
  EXPECT_EQ(p.channels, 2);
  EXPECT_EQ(p.classes, 4);
  EXPECT_EQ(p.class_names, written.class_names);
  EXPECT_EQ(p.mean, written.mean);
  EXPECT_EQ(p.std, written.std);
  EXPECT_EQ(p.mean_image, written.mean_image);
  EXPECT_EQ(p.seed, 7);
  EXPECT_EQ(p.parameters, "formula=1");
  EXPECT_TRUE(find_faults(p, 10).empty());
  const Seal seal = check_seal(written.path);
  EXPECT_EQ(seal.samples_offset, p.images_offset);
  EXPECT_EQ(seal.samples_bytes, 3U * 30U);
  EXPECT_FALSE(std::filesystem::exists(written.path + ".tmp"));
}

TEST(Partition, EveryFlippedByteIsFound) {
  const TempFolder folder;
  const Partition header = formula_header(folder.path(), "train", 0, 1, 6);
  write_formula_partition(header);
  const std::size_t bytes = read_bytes(header.path).size();
  std::size_t missed = 0;
  for (std::size_t at = 0; at < bytes; ++at) {
    const auto mask = static_cast<unsigned char>(1U << (at % 8));
    flip_byte(header.path, at, mask);
    try {
      if (find_faults(read_partition(header.path), 10).empty()) ++missed;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::data);
    }
    flip_byte(header.path, at, mask);
  }
  EXPECT_EQ(missed, 0U);
  EXPECT_TRUE(find_faults(read_partition(header.path), 10).empty());
}

TEST(Partition, FaultsNameTheSampleAndStopAtTheLimit) {
  const TempFolder folder;
  const Partition header = formula_header(folder.path(), "train", 0, 1, 6);
  write_formula_partition(header);
  const Partition p = read_partition(header.path);
  for (std::size_t sample : {2U, 3U, 5U}) flip_byte(header.path, p.images_offset + sample * 30 + 29, 0x80);
  const auto faults = find_faults(p, 2);
  ASSERT_EQ(faults.size(), 3U);
  EXPECT_NE(faults[0].find("sample 2 (id 2) is damaged"), std::string::npos) << faults[0];
  EXPECT_NE(faults[1].find("sample 3 (id 3) is damaged"), std::string::npos) << faults[1];
  EXPECT_NE(faults[2].find("and 1 faults more"), std::string::npos) << faults[2];
}

TEST(WritePartition, AFailureLeavesNothing) {
  const TempFolder folder;
  const Partition header = formula_header(folder.path(), "train", 0, 1, 6);
  const auto broken = [](Index i, std::uint8_t*) -> std::int32_t {
    if (i == 4) fail(Exit::data, "sample 4 can't be read");
    return 0;
  };
  expect_error(Exit::data, {"sample 4 can't be read"}, [&] { write_partition(header, broken); });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  write_formula_partition(header);
  const std::string whole = read_bytes(header.path);
  EXPECT_THROW(write_partition(header, broken), Error);
  EXPECT_EQ(read_bytes(header.path), whole);  // the old file stays
}

TEST(LookFor, TellsWhatIsThere) {
  const TempFolder folder;
  Partition header = formula_header(folder.path(), "train", 0, 1, 6);
  EXPECT_EQ(look_for(header), Existing::none);
  write_formula_partition(header);
  EXPECT_EQ(look_for(header), Existing::complete);
  const Partition p = read_partition(header.path);
  flip_byte(header.path, p.images_offset + 7);
  EXPECT_EQ(look_for(header), Existing::damaged);
  flip_byte(header.path, p.images_offset + 7);
  flip_byte(header.path, p.labels_offset);
  EXPECT_EQ(look_for(header), Existing::damaged);
  flip_byte(header.path, p.labels_offset);
  header.source_digest = "another";
  EXPECT_EQ(look_for(header), Existing::other);
}

TEST(LookFor, TellsWhatAnEarlierVersionMade) {
  const TempFolder folder;
  Partition header = formula_header(folder.path(), "train", 0, 1, 6);
  header.channels = 3;
  header.mean = header.std = {1, 2, 3};
  header.mean_image.clear();
  write_formula_partition(header);
  EXPECT_EQ(look_for(header), Existing::older);
  flip_byte(header.path, read_partition(header.path).images_offset);
  EXPECT_EQ(look_for(header), Existing::damaged);
  header.covariance = {4, 0, 0, 0, 4, 0, 0, 0, 4};
  write_formula_partition(header);
  EXPECT_EQ(look_for(header), Existing::complete);
}

TEST(KeepsOlder, OnlyAWholeSetThatIsNotToBeMadeAgain) {
  EXPECT_TRUE(keeps_older(4, 4, false));
  EXPECT_FALSE(keeps_older(4, 4, true));
  EXPECT_FALSE(keeps_older(3, 4, false)) << "partitions of a set have the same covariance";
}

TEST(PrepareFolder, RemovesLeftoversAndRefusesOthers) {
  const TempFolder folder;
  const std::string out = folder / "new/folder";
  const std::vector<std::string> expected{"train-00000-of-00001.h5"};
  prepare_folder(out, expected, false);
  write_bytes(out + "/train-00000-of-00001.h5", "kept");
  write_bytes(out + "/train-00003-of-00008.h5.tmp", "killed run");
  write_bytes(out + "/notes.txt", "the user's");
  prepare_folder(out, expected, false);
  EXPECT_TRUE(std::filesystem::exists(out + "/train-00000-of-00001.h5"));
  EXPECT_FALSE(std::filesystem::exists(out + "/train-00003-of-00008.h5.tmp"));
  write_bytes(out + "/train-00003-of-00008.h5", "another series");
  expect_error(Exit::usage, {"train-00003-of-00008.h5' is in the way", "--overwrite"},
               [&] { prepare_folder(out, expected, false); });
  prepare_folder(out, expected, true);
  EXPECT_FALSE(std::filesystem::exists(out + "/train-00003-of-00008.h5"));
  EXPECT_TRUE(std::filesystem::exists(out + "/notes.txt"));
  write_bytes(folder / "file", "");
  expect_error(Exit::data, {"cannot make the folder", "choose a writable --out"},
               [&] { prepare_folder(folder / "file/sub", expected, false); });
}

}  // namespace
}  // namespace convoy::preparation
