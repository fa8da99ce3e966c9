// SPDX-License-Identifier: Apache-2.0
// MXNet's RecordIO (dmlc-core's recordio.h) with its image header (src/io/image_recordio.h): magic, length, payload
// padded to 4 bytes; the payload is a flag, a label (or `flag` labels), two ids, and the image file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

struct ImageRecord {
  Index begin = 0;  ///< where the record begins in its file
  Index id = 0;
  std::vector<float> labels;
  std::vector<std::uint8_t> image;
  Index image_bytes = 0;  ///< more than image.size() where it was too large to be read
};

/// Records front to back. Errors are Error(data) naming file and byte.
class RecordReader {
 public:
  /// The stream begins at a record, `offset` bytes into the file.
  RecordReader(std::unique_ptr<ByteStream> stream, std::string what, Index offset = 0);
  /// False at the end of the stream. Memory grows with what arrives, whatever a record announces; an image of more than
  /// `most_bytes` is passed over and left empty.
  bool next(ImageRecord& record, Index most_bytes);
  /// Where the record after the last one begins.
  Index position() const { return position_; }

 private:
  bool read_exactly(std::uint8_t* to, std::size_t bytes, bool may_end);
  void append(std::size_t bytes);
  void pass_over(std::size_t bytes);
  std::unique_ptr<ByteStream> stream_;
  std::string what_;
  Index position_;
  std::vector<std::uint8_t> payload_;
};

/// Byte offsets of the records that an `.idx` file (lines of id and offset) names, sorted.
std::vector<Index> parse_record_index(const std::string& text, const std::string& what);

}  // namespace convoy::preparation
