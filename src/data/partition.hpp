// SPDX-License-Identifier: Apache-2.0
// One partition file as docs/format.md describes it: names, header, checks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "io/file.hpp"

namespace convoy {

constexpr Index format_version = 1;
/// Names of the file's parts.
namespace partition_name {
constexpr const char *images = "/images", *labels = "/labels", *ids = "/ids", *crc = "/crc",
                     *mean_image = "/mean_image", *offsets = "/offsets", *dimensions = "/dimensions", *names = "/names",
                     *name_offsets = "/name_offsets";
}

/// Everything of a partition but its samples. The seal has been checked, and every dataset and attribute.
/// With encoding `jpeg` the images have sizes of their own: height and width are 0, channels what decoding gives.
struct Partition {
  std::string path, split;
  Index number = 0, partitions = 0;  ///< this file's and how many make the split
  Index first = 0, samples = 0;      ///< its part of the global sample space
  Index split_samples = 0, height = 0, width = 0, channels = 0, classes = 0, seed = 0;
  std::vector<std::string> class_names;
  std::vector<double> mean, std;   ///< per channel, pixel units, of the train split
  std::vector<double> covariance;  ///< of three channels, 3 x 3, squared pixel units, of the train split; or empty
  std::vector<float> mean_image;   ///< height * width * channels, or empty
  std::string source, source_digest, encoding, parameters;
  std::uint64_t images_offset = 0, labels_offset = 0, ids_offset = 0, crc_offset = 0;  ///< bytes, in the file
  std::uint64_t offsets_offset = 0, dimensions_offset = 0;                             ///< 0: there are none
  std::uint64_t names_offset = 0, name_offsets_offset = 0;                             ///< 0: there are none
  Index stored_bytes = 0, name_bytes = 0;                                              ///< of all samples, of all names
  std::uint32_t seal_crc = 0;
  bool is_jpeg() const { return encoding == "jpeg"; }
  /// Bytes of one raw sample.
  Index image_bytes() const { return height * width * channels; }
};

/// `train-00003-of-00008.h5`.
std::string partition_file_name(const std::string& split, Index number, Index partitions);

/// A file name of the series, taken apart; partitions = 0 for any other name.
struct PartitionName {
  std::string split;
  Index number = 0, partitions = 0;
};
PartitionName parse_partition_name(const std::string& file_name);

/// Throws Error(data), naming file, dataset or attribute, expected and found: missing, empty, truncated, damaged, wrong
/// dtype, rank, shape or attribute. The samples are not read.
Partition read_partition(const std::string& path);
/// The same without checking the seal. For the fuzzer: nothing else may let HDF5's parser see bytes of unknown origin.
Partition read_sealed_partition(const std::string& path, const struct Seal& seal);

/// The name of a row's sample; empty: the partition keeps no names. Throws Error(data).
std::string stored_name(const std::string& path, Index row);

/// Throws Error(data) naming what differs, unless both belong to the same data set (sizes, classes, normalisation,
/// seed, source).
void require_same_set(const Partition& first, const Partition& other);

/// The tables of a partition, some 30 bytes a sample. Not checked against each other: see find_table_fault().
struct PartitionTables {
  std::vector<std::int32_t> labels;
  std::vector<Index> ids;
  std::vector<std::uint32_t> crc;
  std::vector<Index> offsets;            ///< n + 1, from the beginning of the samples; raw: multiples of a sample
  std::vector<std::int32_t> dimensions;  ///< n x 2 (height, width), or empty
  std::vector<std::string> names;        ///< n, or empty
};
PartitionTables read_partition_tables(const Partition& partition, const File& file);
/// Offsets that leave the samples or run backwards, sizes that are none: what reading relies on. Empty: no fault.
std::string find_table_fault(const Partition& partition, const PartitionTables& tables);

}  // namespace convoy
