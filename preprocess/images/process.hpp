// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "image/resize.hpp"
#include "preprocess/images/findings.hpp"
#include "preprocess/prepare_spec.hpp"
#include "preprocess/sources/sample_reader.hpp"

namespace convoy::preparation {

constexpr std::size_t most_channels = 4;

/// Sums over the pixels of one stored image, per channel.
struct ImageSums {
  std::array<std::uint64_t, most_channels> sum{}, squares{};
  std::array<std::uint64_t, 3> products{};  ///< of channels 0 and 1, 0 and 2, 1 and 2, if there are three
};
/// Exact for any image below 2^31 pixels. 1 to 4 channels.
ImageSums sum_channels(const ImageView& image);

/// What is stored of an image in one size.
struct StoredImage {
  std::vector<std::uint8_t> bytes;  ///< pixels h w c, or a JPEG file
  Index height = 0, width = 0;      ///< raw: of the image before it became a square; jpeg: of the stored image
  Index pixels = 0;                 ///< that went into the sums
  std::uint32_t crc = 0;
  ImageSums sums;
};

struct ProcessedImage {
  bool kept = false;
  std::uint64_t content = 0;        ///< digest of name, class and the file's bytes
  std::uint64_t file = 0;           ///< digest of the file's bytes
  std::vector<StoredImage> stored;  ///< one a size, where it was kept
  std::vector<Note> notes;
};

/// Images to what is stored of them, by one recipe. The same bytes on every machine. One a thread.
class Processor {
 public:
  explicit Processor(const Recipe& recipe);
  void process(const RawSample& raw, ProcessedImage& to);

 private:
  void note_conversions(const RawSample& raw, const DecodeStatus& status, ProcessedImage& to) const;
  void store_pixels(const RawSample& raw, ProcessedImage& to) const;
  void store_raw(Index side, StoredImage& to);
  void store_jpeg(const RawSample& raw, bool unended, Index side, StoredImage& to);
  bool may_pass(const RawSample& raw) const;

  const Recipe& recipe_;
  Decoder decoder_;
  Resizer resizer_;
  Image image_, resized_;
};

}  // namespace convoy::preparation
