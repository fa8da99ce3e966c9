// SPDX-License-Identifier: Apache-2.0
// A prepared data set: partition files of one split form one global sample space 0 .. samples-1 (partition after
// partition). Any number of partitions on any number of ranks: a rank loads the range of the space that it needs.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy {

struct PartitionInfo {
  std::string path;
  Range samples;                                                                       ///< in the global sample space
  std::uint64_t images_offset = 0, labels_offset = 0, ids_offset = 0, crc_offset = 0;  ///< bytes, in the file
  std::uint64_t offsets_offset = 0, dimensions_offset = 0;  ///< jpeg: tables; 0: there are none
  Index stored_bytes = 0;                                   ///< jpeg: of all samples
  std::uint32_t seal_crc = 0;  ///< CRC32C of the file's seal; if it differs, the files differ
};

struct DatasetInfo {
  std::string folder, split;  ///< split: `train`, `val`
  std::vector<PartitionInfo> partitions;
  Index samples = 0, height = 0, width = 0, channels = 0, classes = 0;
  std::vector<std::string> class_names;
  std::vector<std::int32_t> labels_as;  ///< class of each stored label; -1: of none, as its samples'; empty: as stored
  std::vector<double> mean, std;        ///< per channel, pixel units; of the train split
  std::vector<double> covariance;       ///< of the colours, 3 x 3, as mean and std; empty: the set has none
  std::vector<float> mean_image;        ///< empty where the set has none
  std::string source, encoding;
  std::uint64_t digest = 0;  ///< of all partitions' seals: equal on all ranks, part of the configuration hash
  Index image_bytes() const { return height * width * channels; }
  std::int32_t label_of(std::int32_t stored) const {
    return labels_as.empty() ? stored : labels_as[static_cast<std::size_t>(stored)];
  }
};

/// Reads and checks the headers of all partitions of a split. Throws Error(data) naming file, attribute or dataset:
/// missing, empty, truncated, damaged, wrong dtype, rank, shape or attribute, partition missing from the series.
DatasetInfo read_dataset_info(const std::string& folder, const std::string& split);
bool has_split(const std::string& folder, const std::string& split);

enum class OnCorrupt : std::uint8_t { fail, skip };
/// Where the samples of a range are while training runs: read once, or each time they are used.
enum class Keep : std::uint8_t { memory, files };

struct ReadSpec {
  int threads = 1;
  OnCorrupt on_corrupt = OnCorrupt::fail;
  Keep keep = Keep::memory;
};

/// The samples of one range, in memory or read from their files when they are used: labels, ids and tables are in
/// memory either way. Every sample's CRC is checked when it is read, its label at the start.
class Dataset {
 public:
  /// Several read threads. Throws Error(data) naming file, partition and sample.
  Dataset(DatasetInfo info, Range range, const ReadSpec& spec);
  Dataset(DatasetInfo info, Range range, int threads, OnCorrupt on_corrupt = OnCorrupt::fail)
      : Dataset(std::move(info), range, ReadSpec{threads, on_corrupt, Keep::memory}) {}
  /// Made in memory: synthetic_info's samples of one range.
  Dataset(const struct SyntheticSpec& spec, DatasetInfo info, Range range);
  ~Dataset();
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) = delete;

  const DatasetInfo& info() const { return info_; }
  Range range() const { return range_; }
  /// Contiguous n h w c; null where samples aren't pixels in memory.
  const std::uint8_t* images() const;
  /// Else they are read and checked each time they are used.
  bool in_memory() const { return images_ != nullptr; }
  /// -1: of no class (DatasetInfo::labels_as); evaluation leaves the sample out.
  std::int32_t label(Index sample) const { return labels_[static_cast<std::size_t>(sample - range_.begin)]; }
  Index id(Index sample) const { return ids_[static_cast<std::size_t>(sample - range_.begin)]; }

  /// The stored bytes, in memory or read into `scratch`. Sets `fault` where they are damaged. Throws Error(data) where
  /// the file can't be read. Safe from several threads, each with its own scratch.
  std::span<const std::uint8_t> stored(Index sample, std::vector<std::uint8_t>& scratch, std::string& fault) const;
  /// Advice that a range is read soon: the system reads it ahead from front to back. Nothing where samples are in
  /// memory.
  void will_read(Range samples) const;
  /// Handles `fault` of `tried`: throws Error(data), or (OnCorrupt::skip) counts it, warns once, and returns the next
  /// sample to try for `sample`: its predecessors, then its successors. `stored_so`: the file is whole, and its sample
  /// was never an image.
  Index stand_in(Index sample, Index tried, const std::string& fault, bool stored_so = false) const;
  /// `'part.h5': sample 3 (id 7, partition 1)`.
  std::string describe(Index sample) const;
  /// Samples that others stand in for (OnCorrupt::skip).
  Index skipped() const;
  /// Bytes of memory that it holds.
  Index memory_bytes() const;

 private:
  struct Free {
    void operator()(std::uint8_t* p) const;
  };
  /// 64-byte aligned, on 2 MiB pages where large.
  static std::unique_ptr<std::uint8_t[], Free> allocate_images(std::size_t bytes);
  void load(class SampleTable table, int threads);
  DatasetInfo info_;
  Range range_;
  std::unique_ptr<std::uint8_t[], Free> images_;
  Index image_block_bytes_ = 0;
  std::vector<std::int32_t> labels_;
  std::vector<Index> ids_;
  struct Files;
  std::shared_ptr<Files> files_;  ///< null: pixels in memory
  struct Skips;
  std::shared_ptr<Skips> skips_;
};

/// A data set made in memory, for --synthetic and tests: the same generator as `convoy-preprocess synthetic`.
struct SyntheticSpec {
  Index samples = 1000, height = 32, width = 32, channels = 3, classes = 10;
  std::uint64_t seed = 1;
};
constexpr Index most_synthetic_classes = 16 * 15 * 14;
/// One sample, a pure function of (spec.seed, sample): learnable by a small convolutional network, not by a linear
/// model. Writes height * width * channels bytes, returns the label.
std::int32_t synthetic_sample(const SyntheticSpec& spec, Index sample, std::uint8_t* image);

/// --synthetic: the description of a data set made in memory. train has spec.samples samples, val a fifth of them after
/// those; mean and standard deviation are those of the first samples.
DatasetInfo synthetic_info(const SyntheticSpec& spec, const std::string& split);

/// True where the samples of a range stand in order of their classes, or nearly so: neighbours have the same label far
/// more often than in a random order of the same labels. False for fewer than 100 samples, which tell too little.
bool is_sorted_by_class(const Dataset& samples);

}  // namespace convoy
