// SPDX-License-Identifier: Apache-2.0
#include "data/partition.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>

#include "core/errors.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"

namespace convoy {
namespace {

std::string advice(const std::string& path) {
  return fmt::format("run convoy-preprocess verify '{}'", std::filesystem::path(path).parent_path().string());
}

/// Says what to do itself.
struct OtherVersion : Error {
  using Error::Error;
};

template <class... Args>
[[noreturn]] void reject(const Partition& p, fmt::format_string<Args...> text, Args&&... args) {
  fail(Exit::data, "'{}': {}", p.path, fmt::format(text, std::forward<Args>(args)...));
}

/// Whether a dataset lies in the file, without overflow whatever its extents say.
bool lies_within(const DatasetShape& shape, std::uint64_t offset, std::uint64_t file_bytes) {
  std::uint64_t bytes = element_bytes(shape.element);
  for (const Index extent : shape.extent) {
    if (extent < 0 || (extent > 0 && bytes > file_bytes / static_cast<std::uint64_t>(extent))) return false;
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return offset <= file_bytes && bytes <= file_bytes - offset;
}

/// File offset of a dataset that lies in the file.
std::uint64_t place_of(const Partition& p, const Hdf5File& file, const char* name, const Seal& seal) {
  const std::uint64_t offset = file.offset(name);
  if (!lies_within(file.shape(name), offset, seal.file_bytes)) {
    reject(p, "dataset '{}' is {} at byte {} and leaves the file", name, file.shape(name).text(), offset);
  }
  return offset;
}

void expect_shape(const Partition& p, const Hdf5File& file, const char* name, const DatasetShape& expected) {
  if (!file.exists(name)) reject(p, "dataset '{}' is missing, expected {}", name, expected.text());
  const DatasetShape found = file.shape(name);
  if (found != expected) reject(p, "dataset '{}' is {}, expected {}", name, found.text(), expected.text());
}

Index positive_attribute(const Partition& p, const Hdf5File& file, const char* name) {
  const Index value = file.integer_attribute(name);
  if (value <= 0) reject(p, "attribute '{}' is {}, expected a positive number", name, value);
  return value;
}

void read_identity(Partition& p, const Hdf5File& file) {
  const Index version = file.integer_attribute("format_version");
  if (version != format_version) {
    const bool newer = version > format_version;
    throw OtherVersion(
        Exit::data,
        fmt::format("'{}' has format version {} and this program reads {}: {} Convoy wrote it; {}prepare the set again",
                    p.path, version, format_version, newer ? "a newer" : "another",
                    newer ? "use the newer program, or " : ""));
  }
  p.encoding = file.text_attribute("encoding");
  if (p.encoding != "raw" && p.encoding != "jpeg") {
    reject(p, "attribute 'encoding' is '{}', this program reads 'raw' and 'jpeg'", p.encoding);
  }
  p.split = file.text_attribute("split");
  p.number = file.integer_attribute("partition");
  p.partitions = positive_attribute(p, file, "partitions");
  const std::string name = std::filesystem::path(p.path).filename().string();
  const std::string expected = partition_file_name(p.split, p.number, p.partitions);
  // A temporary file has the same name with a suffix.
  if (name.compare(0, expected.size(), expected) != 0) {
    reject(p, "the file's attributes make it '{}', was it renamed?", expected);
  }
  p.first = file.integer_attribute("first_sample");
  p.samples = positive_attribute(p, file, "samples");
  p.split_samples = positive_attribute(p, file, "split_samples");
  if (p.first < 0 || p.samples > p.split_samples || p.first > p.split_samples - p.samples) {
    reject(p, "attributes place {} samples from {} on in a split of {}", p.samples, p.first, p.split_samples);
  }
  p.seed = file.integer_attribute("seed");
  p.source = file.text_attribute("source");
  p.source_digest = file.text_attribute("source_digest");
  p.parameters = file.text_attribute("parameters");
}

void read_classes(Partition& p, const Hdf5File& file) {
  p.classes = positive_attribute(p, file, "classes");
  p.class_names = file.texts_attribute("class_names");
  if (static_cast<Index>(p.class_names.size()) != p.classes) {
    reject(p, "attribute 'class_names' has {} names, expected {}", p.class_names.size(), p.classes);
  }
}

/// Extents of `/images` by encoding: [n, h, w, c], or bytes one after another.
void read_image_shape(Partition& p, const DatasetShape& images) {
  const bool positive = std::all_of(images.extent.begin(), images.extent.end(), [](Index n) { return n > 0; });
  const std::size_t rank = p.is_jpeg() ? 1 : 4;
  const bool plausible = images.element == Element::u8 && images.extent.size() == rank && positive &&
                         (p.is_jpeg() || (images.extent[0] == p.samples && images.extent[3] <= 4));
  if (!plausible) {
    reject(p, "dataset '{}' is {}, expected u8 {}", partition_name::images, images.text(),
           p.is_jpeg() ? "[bytes]" : fmt::format("[{}, height, width, 1 to 4 channels]", p.samples));
  }
  p.stored_bytes = static_cast<Index>(images.bytes());
  if (p.is_jpeg()) return;
  p.height = images.extent[1];
  p.width = images.extent[2];
  p.channels = images.extent[3];
}

void read_shapes(Partition& p, const Hdf5File& file, const Seal& seal) {
  if (!file.exists(partition_name::images)) reject(p, "dataset '{}' is missing", partition_name::images);
  p.images_offset = place_of(p, file, partition_name::images, seal);
  read_image_shape(p, file.shape(partition_name::images));
  const auto place = [&](const char* name, const DatasetShape& shape) {
    expect_shape(p, file, name, shape);
    return place_of(p, file, name, seal);
  };
  p.labels_offset = place(partition_name::labels, {Element::i32, {p.samples}});
  p.ids_offset = place(partition_name::ids, {Element::i64, {p.samples}});
  p.crc_offset = place(partition_name::crc, {Element::u32, {p.samples}});
  if (p.is_jpeg()) {
    p.channels = file.integer_attribute("channels");
    if (p.channels != 1 && p.channels != 3) reject(p, "attribute 'channels' is {}, expected 1 or 3", p.channels);
    p.offsets_offset = place(partition_name::offsets, {Element::i64, {p.samples + 1}});
  }
  if (p.is_jpeg() || file.exists(partition_name::dimensions)) {
    p.dimensions_offset = place(partition_name::dimensions, {Element::i32, {p.samples, 2}});
  }
  if (file.exists(partition_name::names)) {
    const DatasetShape names = file.shape(partition_name::names);
    if (names.element != Element::u8 || names.extent.size() != 1) {
      reject(p, "dataset '{}' is {}, expected u8 [bytes]", partition_name::names, names.text());
    }
    p.names_offset = place_of(p, file, partition_name::names, seal);
    p.name_bytes = static_cast<Index>(names.bytes());
    p.name_offsets_offset = place(partition_name::name_offsets, {Element::i64, {p.samples + 1}});
  }
  if (seal.samples_offset != p.images_offset || seal.samples_bytes != static_cast<std::uint64_t>(p.stored_bytes)) {
    reject(p, "the seal leaves out bytes {} + {}, dataset '{}' lies at {} + {}", seal.samples_offset,
           seal.samples_bytes, partition_name::images, p.images_offset, p.stored_bytes);
  }
}

std::vector<double> channel_attribute(const Partition& p, const Hdf5File& file, const char* name) {
  auto values = file.numbers_attribute(name);
  if (static_cast<Index>(values.size()) != p.channels) {
    reject(p, "attribute '{}' has {} numbers, expected one for each of {} channels", name, values.size(), p.channels);
  }
  for (const double value : values) {
    if (!std::isfinite(value) || value < 0 || value > 255) {
      reject(p, "attribute '{}' holds {}, expected 0 to 255 (pixel units)", name, value);
    }
  }
  return values;
}

std::vector<double> covariance_attribute(const Partition& p, const Hdf5File& file) {
  constexpr const char* name = "covariance";
  constexpr std::size_t side = 3;
  if (!file.has_attribute(name)) return {};
  auto values = file.numbers_attribute(name);
  if (p.channels != 3 || values.size() != side * side) {
    reject(p, "attribute '{}' has {} numbers, expected 9, of images with three channels (these have {})", name,
           values.size(), p.channels);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i], mirrored = values[i % side * side + i / side];
    const bool diagonal = i % (side + 1) == 0;
    if (!(std::abs(value) <= 255 * 255) || value != mirrored || (diagonal && value < 0)) {
      reject(p, "attribute '{}' is no covariance matrix of pixels ({} in row {}, column {})", name, value, i / side,
             i % side);
    }
  }
  return values;
}

void read_normalisation(Partition& p, const Hdf5File& file) {
  p.mean = channel_attribute(p, file, "mean");
  p.std = channel_attribute(p, file, "std");
  p.covariance = covariance_attribute(p, file);
  if (p.is_jpeg() || !file.exists(partition_name::mean_image)) return;
  expect_shape(p, file, partition_name::mean_image, {Element::f32, {p.height, p.width, p.channels}});
  p.mean_image.resize(static_cast<std::size_t>(p.image_bytes()));
  file.read(partition_name::mean_image, Element::f32, std::as_writable_bytes(std::span(p.mean_image)));
}

}  // namespace

std::string partition_file_name(const std::string& split, Index number, Index partitions) {
  return fmt::format("{}-{:05}-of-{:05}.h5", split, number, partitions);
}

PartitionName parse_partition_name(const std::string& file_name) {
  // split - 5 digits - of - 5 digits .h5
  constexpr std::size_t tail = 1 + 5 + 4 + 5 + 3;
  if (file_name.size() <= tail) return {};
  const std::size_t at = file_name.size() - tail;
  PartitionName name{file_name.substr(0, at), 0, 0};
  const char* text = file_name.data() + at;
  std::from_chars(text + 1, text + 6, name.number);
  std::from_chars(text + 10, text + 15, name.partitions);
  return partition_file_name(name.split, name.number, name.partitions) == file_name ? name : PartitionName{};
}

std::string stored_name(const std::string& path, Index row) {
  const Partition p = read_partition(path);
  if (p.names_offset == 0) return "";
  const File file(path, File::Access::read);
  std::array<Index, 2> ends{};
  file.read_at(ends.data(), sizeof ends, p.name_offsets_offset + static_cast<std::uint64_t>(row) * sizeof(Index));
  if (ends[0] < 0 || ends[1] < ends[0] || ends[1] > p.name_bytes)
    reject(p, "dataset '{}' says that name {} is bytes {} to {}", partition_name::name_offsets, row, ends[0], ends[1]);
  std::string name(static_cast<std::size_t>(ends[1] - ends[0]), ' ');
  file.read_at(name.data(), name.size(), p.names_offset + static_cast<std::uint64_t>(ends[0]));
  return name;
}

Partition read_partition(const std::string& path) {
  try {
    return read_sealed_partition(path, check_seal(path));  // before HDF5's parser sees a byte
  } catch (const OtherVersion&) {
    throw;
  } catch (const Error& e) {
    fail(e.code(), "{}; {}", e.what(), advice(path));
  }
}

Partition read_sealed_partition(const std::string& path, const Seal& seal) {
  const Hdf5File file(path, Hdf5File::Access::read);
  Partition p;
  p.path = path;
  p.seal_crc = seal.crc;
  read_identity(p, file);
  read_classes(p, file);
  read_shapes(p, file, seal);
  read_normalisation(p, file);
  return p;
}

void require_same_set(const Partition& first, const Partition& other) {
  const auto differ = [&](const char* what) {
    fail(Exit::data, "'{}' and '{}' belong to different data sets ({} differs); {}", first.path, other.path, what,
         advice(other.path));
  };
  if (first.height != other.height || first.width != other.width || first.channels != other.channels) {
    differ("the shape of images");
  }
  if (first.encoding != other.encoding) differ("attribute 'encoding'");
  if (first.classes != other.classes || first.class_names != other.class_names) differ("attribute 'class_names'");
  if (first.mean != other.mean) differ("attribute 'mean'");
  if (first.std != other.std) differ("attribute 'std'");
  if (first.covariance != other.covariance) differ("attribute 'covariance'");
  if (first.mean_image != other.mean_image) differ("dataset '/mean_image'");
  if (first.seed != other.seed) differ("attribute 'seed'");
  if (first.source != other.source || first.source_digest != other.source_digest) differ("attribute 'source_digest'");
  if (first.parameters != other.parameters) differ("attribute 'parameters'");
  if (first.split == other.split && first.split_samples != other.split_samples) differ("attribute 'split_samples'");
}

namespace {

template <class T>
void read_table(const File& file, std::vector<T>& table, std::size_t count, std::uint64_t offset) {
  table.resize(count);
  file.read_at(table.data(), count * sizeof(T), offset);
}

/// Offsets from 0 to `end`, none smaller than the one before.
bool cover(const std::vector<Index>& offsets, Index end) {
  if (offsets.front() != 0 || offsets.back() != end) return false;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) return false;
  }
  return true;
}

void read_names(const Partition& p, const File& file, std::vector<std::string>& names) {
  std::vector<Index> offsets;
  read_table(file, offsets, static_cast<std::size_t>(p.samples) + 1, p.name_offsets_offset);
  if (!cover(offsets, p.name_bytes)) {
    fail(Exit::data, "'{}': dataset '{}' does not cover the names", p.path, partition_name::name_offsets);
  }
  std::string all(static_cast<std::size_t>(p.name_bytes), '\0');
  file.read_at(all.data(), all.size(), p.names_offset);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    names.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
  }
}

}  // namespace

PartitionTables read_partition_tables(const Partition& p, const File& file) {
  const auto n = static_cast<std::size_t>(p.samples);
  PartitionTables tables;
  read_table(file, tables.labels, n, p.labels_offset);
  read_table(file, tables.ids, n, p.ids_offset);
  read_table(file, tables.crc, n, p.crc_offset);
  if (p.is_jpeg()) {
    read_table(file, tables.offsets, n + 1, p.offsets_offset);
  } else {
    tables.offsets.resize(n + 1);
    for (std::size_t i = 0; i <= n; ++i) tables.offsets[i] = static_cast<Index>(i) * p.image_bytes();
  }
  if (p.dimensions_offset > 0) read_table(file, tables.dimensions, 2 * n, p.dimensions_offset);
  if (p.names_offset > 0) read_names(p, file, tables.names);
  return tables;
}

std::string find_table_fault(const Partition& p, const PartitionTables& tables) {
  if (!cover(tables.offsets, p.stored_bytes)) {
    return fmt::format("'{}': dataset '{}' does not cover the {} bytes of samples", p.path, partition_name::offsets,
                       p.stored_bytes);
  }
  for (std::size_t i = 0; i < tables.dimensions.size(); ++i) {
    if (tables.dimensions[i] > 0) continue;
    return fmt::format("'{}': dataset '{}' holds {} for sample {}, expected pixels", p.path, partition_name::dimensions,
                       tables.dimensions[i], i / 2);
  }
  return {};
}

}  // namespace convoy
