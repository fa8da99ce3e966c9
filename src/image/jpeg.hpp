// SPDX-License-Identifier: Apache-2.0
// Private to image: libjpeg-turbo under RAII. Pixels stay as stored (not upright), ink stays ink.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "image/decode.hpp"
#include "image/image.hpp"

namespace convoy {

/// One JPEG after another. Channels of the result: 3, 1 or, of ink, 4.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  /// header: sizes as stored.
  DecodeStatus open(std::span<const std::uint8_t> file, const DecodeLimits& limits, ImageHeader& header);
  /// `region` in stored pixels of the image shrunk by `denominator`.
  DecodeStatus decode(const Region& region, int denominator, Image& to);
  DecodeStatus decode_all(Image& to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Baseline JPEG of 1 or 3 channels (RGB, chroma halved on both axes), accurate DCT; replaces `to`. quality: 1 to 100.
/// The same bytes on every machine. Throws Error(internal) for sizes that JPEG can't hold.
void encode_jpeg(const ImageView& image, int quality, std::vector<std::uint8_t>& to);

}  // namespace convoy
