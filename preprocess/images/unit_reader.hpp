// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "preprocess/images/findings.hpp"
#include "preprocess/images/sources.hpp"

namespace convoy::preparation {

/// What an image file may take: three bytes for each of --max-pixels, as the decoded image, and a little for the rest.
/// Larger ones are not read.
Index most_file_bytes(const DecodeLimits& limits);

/// One image file as the source holds it.
struct RawImage {
  std::string name;                     ///< independent of where the source lies; decides order and partition
  std::optional<ClassText> class_text;  ///< nothing: the source says none
  std::vector<std::uint8_t> bytes;
  std::optional<Finding> unread;  ///< why `bytes` are none
  std::string detail;             ///< of unread
  Index next = 0;                 ///< position after it: what to give to open_unit() to go on there
};

/// Images of one unit, in order.
class UnitReader {
 public:
  virtual ~UnitReader() = default;
  virtual bool next(RawImage& image) = 0;
};

/// From a position on that an earlier reader of this unit gave; -1: from its beginning. A pool has one reader at a
/// time.
std::unique_ptr<UnitReader> open_unit(const ImagesSpec& spec, OpenPool& pool, const Unit& unit, Index position = -1);

}  // namespace convoy::preparation
