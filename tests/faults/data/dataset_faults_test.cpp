// SPDX-License-Identifier: Apache-2.0
// Files that are damaged, or whole and wrong: each is refused with the file, the part, what is there and what was
// expected.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "data/dataset.hpp"
#include "data/partition.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "support/expect_error.hpp"
#include "support/file_bytes.hpp"
#include "support/partitions.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

/// What one hand-written partition of 4 samples of 3x5x2 has; every test changes one thing. A count of 0 leaves a
/// dataset out.
struct Draft {
  std::string encoding = "raw", split = "train";
  Index format_version = 1, samples = 4, first_sample = 0, partition = 0, partitions = 1;
  DatasetShape images{Element::u8, {4, 3, 5, 2}}, labels{Element::i32, {4}}, ids{Element::i64, {4}},
      crc{Element::u32, {4}}, mean_image{Element::f32, {}};
  std::vector<std::string> class_names{"a", "b", "c"};
  std::vector<double> mean{1, 2}, std{3, 4}, covariance{};
  std::string left_out;  ///< an attribute
  std::vector<std::int32_t> label_values{0, 1, 2, 0};
  std::vector<Index> id_values{0, 1, 2, 3};
};

/// Whole and sealed: only the checks behind the seal can refuse it.
void write_draft(const std::string& path, const Draft& draft) {
  Hdf5File file(path, Hdf5File::Access::create);
  const auto put = [&](const char* name, const auto& value) {
    if (draft.left_out != name) file.attribute(name, value);
  };
  put("format_version", draft.format_version);
  put("encoding", draft.encoding);
  put("split", draft.split);
  put("partition", draft.partition);
  put("partitions", draft.partitions);
  put("first_sample", draft.first_sample);
  put("samples", draft.samples);
  put("split_samples", Index{4});
  put("classes", Index{3});
  put("class_names", draft.class_names);
  put("mean", draft.mean);
  put("std", draft.std);
  if (!draft.covariance.empty()) put("covariance", draft.covariance);
  put("seed", Index{1});
  for (const char* name : {"source", "source_digest", "parameters"}) put(name, std::string("draft"));
  const std::vector<std::uint8_t> zeros(4096);
  std::vector<std::uint32_t> crc(64, crc32c(zeros.data(), 30));
  const auto write = [&](const char* name, const DatasetShape& shape, const void* data) {
    if (!shape.extent.empty()) file.write(name, shape, data);
  };
  write("/labels", draft.labels,
        draft.labels.element == Element::i32 ? static_cast<const void*>(draft.label_values.data()) : zeros.data());
  write("/ids", draft.ids,
        draft.ids.element == Element::i64 ? static_cast<const void*>(draft.id_values.data()) : zeros.data());
  write("/crc", draft.crc, crc.data());
  write("/mean_image", draft.mean_image, zeros.data());
  write("/images", draft.images, zeros.data());
  const std::uint64_t offset = draft.images.extent.empty() ? 0 : file.offset("/images");
  file.close();
  seal_file(path, offset, offset == 0 ? 0 : draft.images.bytes());
}

void expect_refused(const Draft& draft, std::vector<std::string> parts) {
  const TempFolder folder;
  const std::string path = folder / "train-00000-of-00001.h5";
  write_draft(path, draft);
  parts.push_back("train-00000-of-00001.h5'");
  parts.push_back("convoy-preprocess verify '" + folder.path() + "'");
  expect_error(Exit::data, parts, [&] { read_dataset_info(folder.path(), "train"); });
}

TEST(DataFaults, TheDraftItselfIsAccepted) {
  const TempFolder folder;
  write_draft(folder / "train-00000-of-00001.h5", {});
  const Dataset dataset(read_dataset_info(folder.path(), "train"), {0, 4}, 1);
  EXPECT_EQ(dataset.label(2), 2);
}

TEST(DataFaults, WrongDtype) {
  expect_refused({.images = {Element::i32, {4, 3, 5, 2}}}, {"'/images' is i32 [4, 3, 5, 2], expected u8 [4, height"});
  expect_refused({.labels = {Element::i64, {4}}}, {"'/labels' is i64 [4], expected i32 [4]"});
  expect_refused({.ids = {Element::u32, {4}}}, {"'/ids' is u32 [4], expected i64 [4]"});
  expect_refused({.crc = {Element::f32, {4}}}, {"'/crc' is f32 [4], expected u32 [4]"});
  expect_refused({.mean_image = {Element::f64, {3, 5, 2}}}, {"'/mean_image' is f64 [3, 5, 2], expected f32 [3, 5, 2]"});
}

TEST(DataFaults, WrongRank) {
  expect_refused({.images = {Element::u8, {4, 30}}}, {"'/images' is u8 [4, 30], expected u8 [4, height, width"});
  expect_refused({.labels = {Element::i32, {4, 1}}}, {"'/labels' is i32 [4, 1], expected i32 [4]"});
}

TEST(DataFaults, WrongShape) {
  expect_refused({.images = {Element::u8, {3, 3, 5, 2}}}, {"'/images' is u8 [3, 3, 5, 2]"});
  expect_refused({.images = {Element::u8, {4, 3, 5, 5}}}, {"'/images' is u8 [4, 3, 5, 5]", "1 to 4 channels"});
  expect_refused({.labels = {Element::i32, {3}}}, {"'/labels' is i32 [3], expected i32 [4]"});
  expect_refused({.mean_image = {Element::f32, {5, 3, 2}}}, {"'/mean_image' is f32 [5, 3, 2]"});
}

TEST(DataFaults, MissingDatasets) {
  expect_refused({.images = {Element::u8, {}}}, {"dataset '/images' is missing"});
  expect_refused({.labels = {Element::i32, {}}}, {"dataset '/labels' is missing, expected i32 [4]"});
  expect_refused({.crc = {Element::u32, {}}}, {"dataset '/crc' is missing"});
}

TEST(DataFaults, WrongAttributes) {
  expect_refused({.encoding = "webp"}, {"'encoding' is 'webp'", "'raw'"});
  expect_refused({.samples = -4}, {"'samples' is -4, expected a positive number"});
  expect_refused({.first_sample = 1}, {"4 samples from 1 on in a split of 4"});
  expect_refused({.partition = 1, .partitions = 2}, {"train-00001-of-00002.h5', was it renamed?"});
  expect_refused({.class_names = {"a", "b"}}, {"'class_names' has 2 names, expected 3"});
  expect_refused({.mean = {1, 2, 3}}, {"'mean' has 3 numbers, expected one for each of 2 channels"});
  expect_refused({.std = {1, std::nan("")}}, {"'std' holds nan"});
  expect_refused({.mean = {1, 256}}, {"'mean' holds 256"});
  for (const char* name : {"format_version", "encoding", "split", "samples", "split_samples", "classes", "class_names",
                           "mean", "std", "seed", "source", "parameters"}) {
    expect_refused({.left_out = name}, {std::string("attribute '") + name + "' is missing"});
  }
}

TEST(DataFaults, WrongCovariances) {
  const DatasetShape images{Element::u8, {4, 3, 5, 3}};
  const std::vector<double> three{1, 2, 3};
  const auto refused = [&](std::vector<double> covariance, const char* said) {
    expect_refused({.images = images, .mean = three, .std = three, .covariance = std::move(covariance)}, {said});
  };
  refused({1, 2, 3}, "'covariance' has 3 numbers, expected 9");
  refused({4, 1, 0, 2, 4, 0, 0, 0, 4}, "'covariance' is no covariance matrix of pixels (1 in row 0, column 1)");
  refused({4, 0, 0, 0, -4, 0, 0, 0, 4}, "'covariance' is no covariance matrix of pixels (-4 in row 1, column 1)");
  refused({4, 0, 0, 0, 4, 0, 0, 0, std::nan("")}, "(nan in row 2, column 2)");
  expect_refused({.covariance = {4, 0, 0, 0, 4, 0, 0, 0, 4}}, {"of images with three channels (these have 2)"});
}

TEST(DataFaults, IdOfAnotherSample) {
  const TempFolder folder;
  write_draft(folder / "train-00000-of-00001.h5", {.id_values = {0, 1, 7, 3}});
  const DatasetInfo info = read_dataset_info(folder.path(), "train");
  expect_error(Exit::data, {"'/ids' holds 7 for sample 2, expected 2", "convoy-preprocess verify"}, [&] {
    Dataset(info, {2, 2}, 1);
  });
  EXPECT_NO_THROW(Dataset(info, {0, 2}, 1));
}

TEST(DataFaults, LabelOutOfRange) {
  for (const std::int32_t label : {3, -1, 1 << 30}) {
    const TempFolder folder;
    write_draft(folder / "train-00000-of-00001.h5", {.label_values = {0, 1, 2, label}});
    const DatasetInfo info = read_dataset_info(folder.path(), "train");
    expect_error(
        Exit::data,
        {"'/labels' holds " + std::to_string(label) + " for sample 3", "expected 0 to 2", "convoy-preprocess verify"},
        [&] {
          Dataset(info, {0, 4}, 1);
        });
    EXPECT_NO_THROW(Dataset(info, {0, 3}, 1));
  }
}

/// A good split of three partitions whose file 1 a test damages.
struct Damaged {
  TempFolder folder;
  std::string path = folder / "train-00001-of-00003.h5";
  Damaged() { write_formula_split(folder.path(), "train", 3, 12); }
  void expect(const std::vector<std::string>& parts) const {
    expect_error(Exit::data, parts, [&] { read_dataset_info(folder.path(), "train"); });
  }
};

TEST(DataFaults, MissingPartition) {
  const Damaged set;
  std::filesystem::remove(set.path);
  set.expect({"train-00001-of-00003.h5' is missing (2 of 3", "run convoy-preprocess again"});
}

TEST(DataFaults, MissingFolderAndSplit) {
  const Damaged set;
  expect_error(Exit::data, {"/nowhere'", "No such file or directory"},
               [&] { read_dataset_info(set.folder / "nowhere", "train"); });
  expect_error(Exit::data, {"no partition of the split 'val'"}, [&] { read_dataset_info(set.folder.path(), "val"); });
}

TEST(DataFaults, EmptyPartition) {
  const Damaged set;
  write_bytes(set.path, "");
  set.expect({"train-00001-of-00003.h5' is empty", "convoy-preprocess verify"});
}

TEST(DataFaults, TruncatedPartition) {
  const Damaged set;
  const auto bytes = std::filesystem::file_size(set.path);
  for (const std::uintmax_t left : {std::uintmax_t{100}, std::uintmax_t{512}, bytes / 2, bytes - 1}) {
    std::filesystem::resize_file(set.path, left);
    set.expect({"train-00001-of-00003.h5' is truncated (" + std::to_string(left) + " bytes"});
  }
}

TEST(DataFaults, FlippedBits) {
  const Damaged set;
  const Partition p = read_partition(set.path);
  for (const std::uint64_t at :
       {std::uint64_t{20}, std::uint64_t{560}, p.labels_offset, p.crc_offset + 3, p.ids_offset}) {
    flip_byte(set.path, at, 0x10);
    set.expect({"train-00001-of-00003.h5'", "convoy-preprocess verify"});
    flip_byte(set.path, at, 0x10);
  }
  const DatasetInfo info = read_dataset_info(set.folder.path(), "train");
  flip_byte(set.path, p.images_offset + 95, 0x10);
  expect_error(Exit::data, {"sample 3 (id 7, partition 1) is damaged"}, [&] { Dataset(info, {0, 12}, 2); });
}

TEST(DataFaults, MixedSets) {
  const Damaged set;
  Partition other = formula_header(set.folder.path(), "train", 1, 3, 12);
  other.seed = 8;
  write_formula_partition(other);
  set.expect({"different data sets (attribute 'seed' differs)"});
  other.seed = 7;
  other.mean[1] += 1e-9;
  write_formula_partition(other);
  set.expect({"different data sets (attribute 'mean' differs)"});
  write_formula_partition(formula_header(set.folder.path(), "train", 1, 3, 12));
  write_formula_partition(formula_header(set.folder.path(), "train", 0, 2, 12));
  set.expect({"mixes 'train' partitions of 2 and of 3", "--overwrite"});
}

TEST(DataFaults, FileThatShrinksAfterTheCheck) {
  const Damaged set;
  const DatasetInfo info = read_dataset_info(set.folder.path(), "train");
  std::filesystem::resize_file(set.path, 600);
  expect_error(Exit::data, {"train-00001-of-00003.h5' is truncated"}, [&] { Dataset(info, {0, 12}, 3); });
  std::filesystem::remove(set.path);
  expect_error(Exit::data, {"cannot open", "train-00001-of-00003.h5", "No such file"}, [&] {
    Dataset(info, {0, 12}, 3);
  });
}

}  // namespace
}  // namespace convoy
