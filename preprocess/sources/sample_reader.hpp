// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "image/decode.hpp"
#include "preprocess/images/findings.hpp"
#include "preprocess/sources/labels.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// Returns what an image file may take: three bytes for each of --max-pixels, as the decoded image, and a little for
/// the rest. Larger ones are not read.
Index most_file_bytes(const DecodeLimits& limits);

/// One sample as the source holds it: an image file, or the pixels of a set.
struct RawSample {
  std::string name;                     ///< independent of where the source lies; decides order and partition
  std::optional<ClassText> class_text;  ///< nothing: the source says none
  std::vector<std::uint8_t> bytes;
  std::optional<Finding> unread;  ///< why `bytes` are none
  std::string detail;             ///< more about `unread`
  std::string remark;             ///< what the source holds of it besides; empty: nothing
  Index next = 0;                 ///< position after it: what to give to Source::open() to go on there

  void leave_unread(Finding finding, std::string why);
  /// Leaves a file of `file_bytes` (-1: at least `most_bytes`) unread, because --max-pixels allows `most_bytes`.
  void leave_too_large(Index file_bytes, Index most_bytes);
  /// Reads a file to its end, unless it is too large.
  void read_file(ByteStream& stream, Index most_bytes);
};

/// Samples of one shard, in order.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  virtual bool next(RawSample& sample) = 0;
};

}  // namespace convoy::preparation
