// SPDX-License-Identifier: Apache-2.0
// Units: the pieces of a source that are dealt over ranks, and after which a restart goes on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace convoy::preparation {

/// Where images come from; a pool becomes a split, or is cut into two.
enum class Pool : std::uint8_t { train, val };
constexpr Index pool_count = 2;

enum class UnitKind : std::uint8_t {
  files,    ///< files of a folder
  listed,   ///< files named by a label file
  tar,      ///< images in an archive
  shard,    ///< a webdataset archive: files that share a key
  records,  ///< MXNet's RecordIO
};

struct Unit {
  UnitKind kind = UnitKind::files;
  Pool pool = Pool::train;
  std::string object;      ///< folder, archive or file, in the pool's store
  std::string prefix;      ///< put before its images' names
  std::string class_name;  ///< of images that no folder inside says a class of; empty: none
  /// files, listed: entries [begin, end). tar inside a tar: bytes of the outer one. Others: bytes of headers in the
  /// (unpacked) object. end -1: all.
  Index begin = 0, end = -1;
  bool nested = false;  ///< a tar inside a tar
  Index weight = 1;     ///< bytes, or a guess at them: for dealing and for progress
};
/// What a file whose size was not asked for is taken to weigh.
constexpr Index usual_file_bytes = 110'000;

std::string to_text(const std::vector<Unit>& units);
std::vector<Unit> units_from_text(const std::string& text);

/// Which rank takes which unit: the heaviest first, each to the rank with the least so far.
std::vector<int> deal_units(const std::vector<Unit>& units, const std::vector<Index>& left, int ranks);

}  // namespace convoy::preparation
