// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "preprocess/images/sources.hpp"

namespace convoy {

/// One image file as the source holds it.
struct RawImage {
  std::string name;                     ///< independent of where the source lies; decides order and partition
  std::optional<ClassText> class_text;  ///< nothing: the source says none
  std::vector<std::uint8_t> bytes;
  Index next = 0;  ///< position after it: what to give to open_unit() to go on there
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

}  // namespace convoy
