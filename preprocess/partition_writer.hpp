// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/partition.hpp"
#include "io/file.hpp"

namespace convoy::preparation {

/// What a partition holds besides its images, one entry per sample.
struct SampleRows {
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> crc;
  std::vector<Index> offsets;            ///< jpeg: n + 1
  std::vector<std::int32_t> dimensions;  ///< n x 2, or empty
  std::vector<std::string> names;        ///< n, or empty
};

/// One partition in the making, under `header.path`.tmp until finish(): the final name never holds half a file. Samples
/// come in any order. Errors are Error(data); the temporary file is removed then.
class PartitionWriter {
 public:
  /// `rows`: sizes, offsets and names must be final; labels and CRCs may be filled in until finish(). Offsets and seal
  /// of the header are not read.
  PartitionWriter(Partition header, SampleRows rows);
  ~PartitionWriter();
  PartitionWriter(const PartitionWriter&) = delete;
  PartitionWriter& operator=(const PartitionWriter&) = delete;

  SampleRows& rows() { return rows_; }
  /// Bytes of samples from `offset` on.
  void put(std::uint64_t offset, const void* bytes, std::size_t count);
  void finish();

 private:
  void write_structure();
  Partition header_;
  SampleRows rows_;
  std::string temporary_;
  std::uint64_t sample_bytes_ = 0;
  std::optional<File> file_;
  bool finished_ = false;
};

}  // namespace convoy::preparation
