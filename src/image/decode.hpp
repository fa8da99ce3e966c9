// SPDX-License-Identifier: Apache-2.0
// JPEG, PNG and WebP files in memory to upright 8-bit pixels. Bad files are values, not exceptions: a data set has
// some.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "image/image.hpp"

namespace convoy {

enum class ImageFormat : std::uint8_t { unknown, jpeg, png, webp };
const char* format_name(ImageFormat format);

/// Why a file gives no image.
enum class Fault : std::uint8_t {
  none,
  empty,         ///< zero bytes
  not_an_image,  ///< no JPEG, PNG or WebP
  unsupported,   ///< a kind that the libraries can't read, or the build has none
  too_large,     ///< past the limits
  truncated,
  damaged,
};
/// `truncated`, for reports.
const char* fault_name(Fault fault);

struct DecodeStatus {
  Fault fault = Fault::none;
  std::string reason;    ///< of the fault, or the library's first harmless warning; empty: neither
  bool unended = false;  ///< a whole image that lacks only JPEG's end marker
  bool ok() const { return fault == Fault::none; }
};

/// What a file announces, and what had to be converted.
struct ImageHeader {
  ImageFormat format = ImageFormat::unknown;
  Index height = 0, width = 0;                        ///< of the upright image
  std::uint8_t orientation = 1;                       ///< EXIF's, 1 to 8; 1: stored upright
  bool grey = false, cmyk = false;                    ///< stored as one channel; as four of ink
  bool palette = false, alpha = false, deep = false;  ///< deep: 16 bits a channel
  bool rotated() const { return orientation != 1; }
};

enum class Channels : std::uint8_t { rgb, grey };
constexpr Index channel_count(Channels channels) { return channels == Channels::rgb ? 3 : 1; }

struct DecodeLimits {
  Index max_side = 65500;  ///< JPEG knows no more
  Index max_pixels = Index{1} << 27;
  int max_scans = 100;  ///< of a progressive JPEG: small files with many scans take minutes
};

/// The rectangle that a file's region became.
struct DecodedRegion {
  int denominator = 1;  ///< pixels of the file per pixel of the result and axis
  Region wanted;        ///< rounded outwards: in pixels of the image shrunk by the denominator
};

/// Decodes one file after another; keeps its memory. One a thread.
///
/// Grey is repeated into three channels, 16 bits are scaled to 8, alpha is dropped, palettes are looked up, ink (CMYK,
/// YCCK; inverted, as all known writers do) becomes RGB, and EXIF's orientation is applied.
class Decoder {
 public:
  explicit Decoder(Channels channels = Channels::rgb, const DecodeLimits& limits = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// Reads the header. `file` must stay until the decoding. After a fault there is nothing to decode.
  DecodeStatus open(std::span<const std::uint8_t> file);
  const ImageHeader& header() const;

  /// The whole image, equal to Pillow's for RGB and grey. Once per open().
  DecodeStatus decode(Image& to);
  /// A region of the upright image (in full pixels), of a JPEG shrunk by 1, 2, 4 or 8 while decoding; other
  /// files aren't. With denominator 1 the pixels equal those of decode(). Rows below the region are not looked at. Once
  /// per open().
  DecodeStatus decode_region(const Region& region, int denominator, Image& to, DecodedRegion& decoded);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The largest denominator (1, 2, 4, 8) that leaves `region` no smaller than height x width on both axes.
int shrink_for(const Region& region, Index height, Index width);

}  // namespace convoy
