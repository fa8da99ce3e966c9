// SPDX-License-Identifier: Apache-2.0
#include "image/decode.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/errors.hpp"
#include "image/jpeg.hpp"
#include "image/orient.hpp"
#include "image/png_reader.hpp"
#include "image/webp_reader.hpp"

namespace convoy {
namespace {

bool starts_with(std::span<const std::uint8_t> file, std::span<const std::uint8_t> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
}

/// Names what people take for JPEG.
std::string kind_of(std::span<const std::uint8_t> file) {
  const std::string head(file.begin(),
                         file.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(12, file.size())));
  if (head.starts_with("GIF8")) return "a GIF file";
  if (head.starts_with("BM")) return "a BMP file";
  using namespace std::string_view_literals;  // they know their length: the magic numbers hold null bytes
  for (const auto magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (head.starts_with(magic)) return "a TIFF file";
  }
  if (head.starts_with("<")) return "HTML or XML text";
  return "neither JPEG, PNG nor WebP";
}

/// a * b / 255, rounded.
constexpr unsigned scaled_product(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// Ink as files have it (255: none) to RGB.
void ink_to_rgb(const Image& from, Image& to) {
  to.reshape(from.height, from.width, 3);
  const std::uint8_t* ink = from.pixels.data();
  std::uint8_t* rgb = to.pixels.data();
  for (Index i = 0; i < from.height * from.width; ++i, ink += 4, rgb += 3) {
    const unsigned white = ink[3];  // 255 - black
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(white - scaled_product(255U - ink[c], white));
  }
}

void grey_to_rgb(const Image& from, Image& to) {
  to.reshape(from.height, from.width, 3);
  std::uint8_t* rgb = to.pixels.data();
  for (const std::uint8_t value : from.pixels) rgb = std::fill_n(rgb, 3, value);
}

/// Luma of ITU-R BT.601 in 16 bits, as Pillow's convert("L").
void rgb_to_grey(const Image& from, Image& to) {
  to.reshape(from.height, from.width, 1);
  const std::uint8_t* rgb = from.pixels.data();
  for (std::uint8_t& grey : to.pixels) {
    grey = static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
    rgb += 3;
  }
}

}  // namespace

const char* format_name(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg:
      return "JPEG";
    case ImageFormat::png:
      return "PNG";
    case ImageFormat::webp:
      return "WebP";
    case ImageFormat::unknown:
      break;
  }
  return "?";
}

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "whole";
    case Fault::empty:
      return "empty";
    case Fault::not_an_image:
      return "not an image";
    case Fault::unsupported:
      return "unsupported";
    case Fault::too_large:
      return "too large";
    case Fault::truncated:
      return "truncated";
    case Fault::damaged:
      return "damaged";
  }
  return "?";
}

int shrink_for(const Region& region, Index height, Index width) {
  for (const int denominator : {8, 4, 2}) {
    if (region.height >= height * denominator && region.width >= width * denominator) return denominator;
  }
  return 1;
}

struct Decoder::State {
  Channels channels = Channels::rgb;
  DecodeLimits limits;
  std::span<const std::uint8_t> file;
  ImageHeader header;
  JpegReader jpeg;
  Image stored, turned;

  Index stored_height() const { return swaps_sides(header.orientation) ? header.width : header.height; }
  Index stored_width() const { return swaps_sides(header.orientation) ? header.height : header.width; }

  DecodeStatus read_whole(Image& to) {
    switch (header.format) {
      case ImageFormat::jpeg:
        return jpeg.decode_all(to);
      case ImageFormat::png:
        return read_png(file, to);
      case ImageFormat::webp:
        return read_webp(file, to);
      case ImageFormat::unknown:
        break;
    }
    return {Fault::not_an_image, ""};
  }

  /// `stored` to what was asked for; `to` may be swapped with it.
  void finish(Image& to) {
    if (header.rotated()) {
      make_upright(stored, header.orientation, turned);
      std::swap(stored, turned);
    }
    if (stored.channels == 4) {
      ink_to_rgb(stored, turned);
      std::swap(stored, turned);
    }
    if (stored.channels == channel_count(channels)) {
      std::swap(stored, to);
    } else if (channels == Channels::rgb) {
      grey_to_rgb(stored, to);
    } else {
      rgb_to_grey(stored, to);
    }
  }
};

Decoder::Decoder(Channels channels, const DecodeLimits& limits) : state_(std::make_unique<State>()) {
  state_->channels = channels;
  state_->limits = limits;
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

const ImageHeader& Decoder::header() const { return state_->header; }

DecodeStatus Decoder::open(std::span<const std::uint8_t> file) {
  constexpr std::array<std::uint8_t, 3> jpeg_magic{0xFF, 0xD8, 0xFF};
  constexpr std::array<std::uint8_t, 8> png_magic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  State& s = *state_;
  s.file = file;
  s.header = {};
  if (file.empty()) return {Fault::empty, "zero bytes"};
  DecodeStatus status;
  if (starts_with(file, jpeg_magic)) {
    status = s.jpeg.open(file, s.limits, s.header);
  } else if (starts_with(file, png_magic)) {
    status = read_png_header(file, s.header);
  } else if (is_webp(file)) {
    status = read_webp_header(file, s.header);
  } else {
    return {Fault::not_an_image, kind_of(file)};
  }
  if (!status.ok()) return status;
  ImageHeader& h = s.header;
  if (h.height <= 0 || h.width <= 0) return {Fault::damaged, fmt::format("{} x {} pixels", h.height, h.width)};
  if (h.height > s.limits.max_side || h.width > s.limits.max_side || h.height > s.limits.max_pixels / h.width) {
    return {Fault::too_large, fmt::format("{} x {} pixels", h.height, h.width)};
  }
  if (swaps_sides(h.orientation)) std::swap(h.height, h.width);
  return status;
}

DecodeStatus Decoder::decode(Image& to) {
  State& s = *state_;
  DecodeStatus status = s.read_whole(s.stored);
  if (status.ok()) s.finish(to);
  return status;
}

DecodeStatus Decoder::decode_region(const Region& region, int denominator, Image& to, DecodedRegion& decoded) {
  State& s = *state_;
  const ImageHeader& h = s.header;
  require(region.y >= 0 && region.x >= 0 && region.height > 0 && region.width > 0 &&
              region.y + region.height <= h.height && region.x + region.width <= h.width,
          "decode_region: region outside the image");
  // Mirrored images would lie off the shrunk grid by a fraction of a pixel: they are few, and decoded in full size.
  decoded.denominator = h.format == ImageFormat::jpeg && !h.rotated() ? denominator : 1;
  const Index d = decoded.denominator;
  decoded.wanted.y = region.y / d;
  decoded.wanted.x = region.x / d;
  decoded.wanted.height = (region.y + region.height + d - 1) / d - decoded.wanted.y;
  decoded.wanted.width = (region.x + region.width + d - 1) / d - decoded.wanted.x;
  const Region stored = stored_region(decoded.wanted, h.orientation, s.stored_height(), s.stored_width());
  DecodeStatus status;
  if (h.format == ImageFormat::jpeg) {
    status = s.jpeg.decode(stored, decoded.denominator, s.stored);
  } else {
    status = s.read_whole(s.turned);
    if (status.ok()) {
      const ImageView part = s.turned.view().part(stored);
      s.stored.reshape(part.height, part.width, part.channels);
      for (Index y = 0; y < part.height; ++y) std::copy_n(part.row(y), part.width * part.channels, s.stored.row(y));
    }
  }
  if (status.ok()) s.finish(to);
  return status;
}

}  // namespace convoy
