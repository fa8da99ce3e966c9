// SPDX-License-Identifier: Apache-2.0
#include "image/webp_reader.hpp"

#include <algorithm>
#include <string_view>

#ifdef CONVOY_WEBP
#include <webp/decode.h>
#include <webp/demux.h>

#include "image/orient.hpp"
#endif

namespace convoy {

bool is_webp(std::span<const std::uint8_t> file) {
  constexpr std::string_view riff = "RIFF", webp = "WEBP";
  return file.size() >= 12 && std::equal(riff.begin(), riff.end(), file.begin()) &&
         std::equal(webp.begin(), webp.end(), file.begin() + 8);
}

#ifndef CONVOY_WEBP

DecodeStatus read_webp_header(std::span<const std::uint8_t>, ImageHeader&) {
  return {Fault::unsupported, "a WebP file, and this build has no libwebp"};
}
DecodeStatus read_webp(std::span<const std::uint8_t>, Image&) { return {Fault::unsupported, ""}; }

#else

namespace {

/// A file taken apart into chunks.
class Chunks {
 public:
  explicit Chunks(std::span<const std::uint8_t> file) {
    const WebPData data{file.data(), file.size()};
    demux_ = WebPDemuxPartial(&data, &state_);
    if (is_whole()) has_frame_ = WebPDemuxGetFrame(demux_, 1, &frame_) != 0;
  }
  ~Chunks() {
    if (has_frame_) WebPDemuxReleaseIterator(&frame_);
    WebPDemuxDelete(demux_);
  }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  DecodeStatus status() const {
    if (state_ == WEBP_DEMUX_PARSE_ERROR) return {Fault::damaged, "no valid WebP chunks"};
    if (!is_whole()) return {Fault::truncated, "the file ends early"};
    if (!has_frame_) return {Fault::damaged, "no frame"};
    return {};
  }
  const WebPIterator& frame() const { return frame_; }
  Index feature(WebPFormatFeature which) const { return WebPDemuxGetI(demux_, which); }

  std::uint8_t orientation() const {
    WebPChunkIterator exif;
    if (WebPDemuxGetChunk(demux_, "EXIF", 1, &exif) == 0) return 1;
    std::span<const std::uint8_t> bytes(exif.chunk.bytes, exif.chunk.size);
    constexpr std::string_view jpeg_name("Exif\0\0", 6);  // some writers keep it
    if (bytes.size() > jpeg_name.size() && std::equal(jpeg_name.begin(), jpeg_name.end(), bytes.begin())) {
      bytes = bytes.subspan(jpeg_name.size());
    }
    const std::uint8_t found = find_orientation(bytes);
    WebPDemuxReleaseChunkIterator(&exif);
    return found;
  }

 private:
  bool is_whole() const { return state_ == WEBP_DEMUX_DONE; }

  WebPDemuxer* demux_ = nullptr;
  WebPDemuxState state_ = WEBP_DEMUX_PARSE_ERROR;
  WebPIterator frame_{};
  bool has_frame_ = false;
};

DecodeStatus status_of(VP8StatusCode code) {
  if (code == VP8_STATUS_OK) return {};
  if (code == VP8_STATUS_NOT_ENOUGH_DATA) return {Fault::truncated, "the file ends early"};
  if (code == VP8_STATUS_UNSUPPORTED_FEATURE) return {Fault::unsupported, "a kind of WebP that libwebp can't read"};
  return {Fault::damaged, code == VP8_STATUS_OUT_OF_MEMORY ? "libwebp found no memory" : "no valid WebP image"};
}

}  // namespace

DecodeStatus read_webp_header(std::span<const std::uint8_t> file, ImageHeader& header) {
  const Chunks chunks(file);
  if (!chunks.status().ok()) return chunks.status();
  header = {};
  header.format = ImageFormat::webp;
  header.height = chunks.feature(WEBP_FF_CANVAS_HEIGHT);
  header.width = chunks.feature(WEBP_FF_CANVAS_WIDTH);
  header.alpha = chunks.frame().has_alpha != 0;
  header.orientation = chunks.orientation();
  return {};
}

DecodeStatus read_webp(std::span<const std::uint8_t> file, Image& to) {
  const Chunks chunks(file);
  if (!chunks.status().ok()) return chunks.status();
  const WebPIterator& frame = chunks.frame();
  to.reshape(chunks.feature(WEBP_FF_CANVAS_HEIGHT), chunks.feature(WEBP_FF_CANVAS_WIDTH), 3);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return {Fault::unsupported, "libwebp is another version than its headers"};
  const bool inside = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.x_offset + frame.width <= to.width &&
                      frame.y_offset + frame.height <= to.height;
  if (!inside) return {Fault::damaged, "a frame outside its picture"};
  // A first frame need not fill the picture; the rest is black.
  if (frame.width < to.width || frame.height < to.height)
    std::fill(to.pixels.begin(), to.pixels.end(), std::uint8_t{0});
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = to.row(frame.y_offset) + Index{3} * frame.x_offset;
  config.output.u.RGBA.stride = static_cast<int>(3 * to.width);
  config.output.u.RGBA.size =
      static_cast<std::size_t>(3 * to.width * (frame.height - 1)) + static_cast<std::size_t>(3 * frame.width);
  return status_of(WebPDecode(frame.fragment.bytes, frame.fragment.size, &config));
}

#endif

}  // namespace convoy
