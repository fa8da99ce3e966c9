// SPDX-License-Identifier: Apache-2.0
// Where the samples of a range lie in their partition files.
#pragma once
#include <cstdint>
#include <vector>

#include "data/dataset.hpp"
#include "io/file.hpp"

namespace convoy {

/// One sample's bytes in its file.
struct Extent {
  std::uint64_t begin = 0;
  std::uint32_t bytes = 0, crc = 0;
  std::uint64_t end() const { return begin + bytes; }
};

class SampleTable {
 public:
  /// Opens the partitions of the range and reads its rows of their tables. Throws Error(data) naming the file where
  /// labels or offsets make no sense; Error(usage) where more files must be open than the system lets.
  SampleTable(const DatasetInfo& info, Range range);

  std::vector<std::int32_t> labels;
  std::vector<Index> ids;
  std::vector<Extent> extents;

  bool same_file(std::size_t a, std::size_t b) const { return part_of(a) == part_of(b); }
  /// The bytes of rows [first, last), which lie in one file, one after another. Safe from several threads.
  void read(std::size_t first, std::size_t last, std::uint8_t* to) const;
  /// Advice to the system that rows [first, last) are read soon.
  void read_ahead(std::size_t first, std::size_t last) const;
  /// No more reading.
  void close() { files_.clear(); }

 private:
  std::size_t part_of(std::size_t row) const;
  std::vector<std::size_t> begins_;  ///< first row of each file
  std::vector<File> files_;
};

/// The labels of a range alone, as DatasetInfo::label_of says them; one file is open at a time. Throws Error(data)
/// naming the file where they make no sense.
std::vector<std::int32_t> read_labels(const DatasetInfo& info, Range range);

}  // namespace convoy
