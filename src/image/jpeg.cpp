// SPDX-License-Identifier: Apache-2.0
// jpeglib.h needs size_t and FILE before it, and jerror.h needs jpeglib.h.
#include "image/jpeg.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "core/errors.hpp"
#include "image/orient.hpp"

namespace convoy {
namespace {

constexpr int exif_marker = JPEG_APP0 + 1;
constexpr std::array<std::uint8_t, 6> exif_name{'E', 'x', 'i', 'f', 0, 0};

/// libjpeg calls back with its own structure, whose first member this holds.
struct Errors {
  jpeg_error_mgr base{};
  std::jmp_buf leave{};
  Fault fault = Fault::none;  ///< of the first grave warning
  std::array<char, JMSG_LENGTH_MAX> text{};
  bool spoke = false;
  bool pixels_lost = false;  ///< by a grave warning
  bool unended = false;

  void reset() {
    fault = Fault::none;
    pixels_lost = unended = false;
    text[0] = '\0';
    spoke = false;
  }
};

Errors& errors_of(j_common_ptr jpeg) { return *reinterpret_cast<Errors*>(jpeg->err); }

/// Warnings after which pixels are wrong. The others (bytes between markers, versions, colour marks) cost no pixel.
Fault gravity(int code) {
  switch (code) {
    case JWRN_JPEG_EOF:
      return Fault::truncated;
    case JWRN_HIT_MARKER:  // `premature end of data segment`: the rest of the scan is missing
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      return Fault::damaged;
    default:
      return Fault::none;
  }
}

Fault fault_of_error(int code) {
  switch (code) {
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
      return Fault::truncated;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_J_COLORSPACE:
      return Fault::unsupported;
    default:
      return Fault::damaged;
  }
}

void keep_message(j_common_ptr jpeg) {
  Errors& errors = errors_of(jpeg);
  if (!errors.spoke) errors.base.format_message(jpeg, errors.text.data());
  errors.spoke = true;
}

void on_warning(j_common_ptr jpeg, int level) {
  if (level >= 0) return;  // a trace
  Errors& errors = errors_of(jpeg);
  const Fault fault = gravity(errors.base.msg_code);
  if (fault != Fault::none && errors.fault == Fault::none) {
    errors.spoke = false;  // a grave reason replaces a harmless one
    errors.fault = fault;
  }
  // The end of the file alone loses none: another warning follows where data is missing that is needed.
  errors.pixels_lost = errors.pixels_lost || (fault != Fault::none && errors.base.msg_code != JWRN_JPEG_EOF);
  keep_message(jpeg);
}

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Errors& errors = errors_of(jpeg);
  if (errors.fault == Fault::none) {
    errors.fault = fault_of_error(errors.base.msg_code);
    errors.spoke = false;
  }
  keep_message(jpeg);
  std::longjmp(errors.leave, 1);
}

void on_message(j_common_ptr) {}

/// Whether the scans of a progressive file that have come tell all bits of all coefficients.
bool is_refined(const jpeg_decompress_struct& jpeg) {
  if (jpeg.progressive_mode == FALSE || jpeg.coef_bits == nullptr)
    return false;  // of other files the last may be missing
  for (int component = 0; component < jpeg.num_components; ++component) {
    const int* bits = jpeg.coef_bits[component];
    if (std::any_of(bits, bits + DCTSIZE2, [](int left) { return left != 0; })) return false;
  }
  return true;
}

}  // namespace

struct JpegReader::State {
  jpeg_decompress_struct jpeg{};
  Errors errors;
  jpeg_progress_mgr progress{};
  int max_scans = 0;
  std::vector<std::uint8_t> margin;  ///< one row, wider than the region

  State() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    errors.base.emit_message = on_warning;
    errors.base.output_message = on_message;
    jpeg_create_decompress(&jpeg);
    jpeg.client_data = this;
    progress.progress_monitor = [](j_common_ptr common) {
      auto* decoder = reinterpret_cast<j_decompress_ptr>(common);
      const auto* state = static_cast<const State*>(common->client_data);
      if (decoder->input_scan_number <= state->max_scans) return;
      Errors& own = errors_of(common);
      own.fault = Fault::too_large;
      own.spoke = true;
      std::snprintf(own.text.data(), own.text.size(), "more than %d scans", state->max_scans);
      std::longjmp(own.leave, 1);
    };
    jpeg.progress = &progress;
  }
  ~State() { jpeg_destroy_decompress(&jpeg); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  DecodeStatus status() const { return {errors.fault, errors.text.data(), errors.unended}; }

  void find_exif(ImageHeader& header) const {
    for (auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != exif_marker || marker->data_length < exif_name.size()) continue;
      if (std::memcmp(marker->data, exif_name.data(), exif_name.size()) != 0) continue;
      header.orientation = find_orientation({marker->data + exif_name.size(), marker->data_length - exif_name.size()});
      return;
    }
  }

  bool ink() const { return jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK; }
};

JpegReader::JpegReader() : state_(std::make_unique<State>()) {}
JpegReader::~JpegReader() = default;

// Between setjmp and the end of these functions no local needs a destructor.
DecodeStatus JpegReader::open(std::span<const std::uint8_t> file, const DecodeLimits& limits, ImageHeader& header) {
  State& s = *state_;
  jpeg_abort_decompress(&s.jpeg);
  s.errors.reset();
  s.max_scans = limits.max_scans;
  if (setjmp(s.errors.leave) != 0) return s.status();  // NOLINT(cert-err52-cpp): libjpeg's only way out
  jpeg_mem_src(&s.jpeg, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_save_markers(&s.jpeg, exif_marker, 0xFFFF);
  jpeg_read_header(&s.jpeg, TRUE);
  header = {};
  header.format = ImageFormat::jpeg;
  header.height = s.jpeg.image_height;
  header.width = s.jpeg.image_width;
  header.grey = s.jpeg.num_components == 1;
  header.cmyk = s.ink();
  s.find_exif(header);
  return s.status();
}

DecodeStatus JpegReader::decode_all(Image& to) {
  return decode({0, 0, static_cast<Index>(state_->jpeg.image_height), static_cast<Index>(state_->jpeg.image_width)}, 1,
                to);
}

DecodeStatus JpegReader::decode(const Region& region, int denominator, Image& to) {
  State& s = *state_;
  jpeg_decompress_struct& jpeg = s.jpeg;
  s.errors.fault = Fault::none;
  s.errors.pixels_lost = s.errors.unended = false;
  if (setjmp(s.errors.leave) != 0) return s.status();  // NOLINT(cert-err52-cpp)
  jpeg.out_color_space = s.ink() ? JCS_CMYK : jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(denominator);
  jpeg_start_decompress(&jpeg);
  const auto width = static_cast<Index>(jpeg.output_width), channels = static_cast<Index>(jpeg.output_components);
  to.reshape(region.height, region.width, channels);

  // Chroma is interpolated, so that a column needs its neighbours: one sample of chroma more on each side keeps the
  // pixels those of a full decoding. The library rounds the left side outwards to whole blocks.
  Index left = 0;
  if (region.x > 0 || region.width < width) {
    const Index more = Index{jpeg.max_h_samp_factor};
    const Index wanted = std::max<Index>(region.x - more, 0);
    auto offset = static_cast<JDIMENSION>(wanted);
    auto columns = static_cast<JDIMENSION>(std::min(region.x + region.width + more, width) - wanted);
    jpeg_crop_scanline(&jpeg, &offset, &columns);
    left = region.x - static_cast<Index>(offset);
  }
  if (region.y > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(region.y));
  // libjpeg-turbo stores aligned rows past the caches, from where the next to read them would have to fetch them again.
  constexpr std::size_t alignment = 32, off = 8;
  s.margin.resize(static_cast<std::size_t>(jpeg.output_width) * jpeg.output_components + alignment + off);
  std::uint8_t* margin = s.margin.data();
  margin += off + (alignment - reinterpret_cast<std::uintptr_t>(margin) % alignment) % alignment;
  const bool same_width = left == 0 && static_cast<Index>(jpeg.output_width) == region.width;
  for (Index y = 0; y < region.height; ++y) {
    const bool direct = same_width && reinterpret_cast<std::uintptr_t>(to.row(y)) % alignment != 0;
    JSAMPROW row = direct ? to.row(y) : margin;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (!direct) std::copy_n(margin + left * channels, region.width * channels, to.row(y));
  }
  const bool has_all_scans = jpeg_has_multiple_scans(&jpeg) == FALSE || is_refined(jpeg);
  // To the end of the file, where it is looked at whole: what comes after the last row tells truncated files.
  if (jpeg.output_scanline == jpeg.output_height) {
    jpeg_finish_decompress(&jpeg);
  } else {
    jpeg_abort_decompress(&jpeg);
  }
  // Complete but for its end marker: the image is kept, with the warning.
  s.errors.unended = s.errors.fault == Fault::truncated && has_all_scans && !s.errors.pixels_lost;
  if (s.errors.unended) s.errors.fault = Fault::none;
  return s.status();
}

namespace {

struct EncodingErrors {
  jpeg_error_mgr base{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> text{};
};

/// libjpeg's own buffer, freed whatever happens.
struct Encoding {
  jpeg_compress_struct jpeg{};
  EncodingErrors errors;
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;

  Encoding() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = [](j_common_ptr common) {
      auto& own = *reinterpret_cast<EncodingErrors*>(common->err);
      own.base.format_message(common, own.text.data());
      std::longjmp(own.leave, 1);
    };
    errors.base.output_message = [](j_common_ptr) {};
    jpeg_create_compress(&jpeg);
  }
  ~Encoding() {
    jpeg_destroy_compress(&jpeg);
    std::free(buffer);  // NOLINT: libjpeg allocated it
  }
  Encoding(const Encoding&) = delete;
  Encoding& operator=(const Encoding&) = delete;

  bool run(const ImageView& image, int quality) {
    if (setjmp(errors.leave) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg's only way out
    jpeg_mem_dest(&jpeg, &buffer, &bytes);
    jpeg.image_height = static_cast<JDIMENSION>(image.height);
    jpeg.image_width = static_cast<JDIMENSION>(image.width);
    jpeg.input_components = static_cast<int>(image.channels);
    jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (Index y = 0; y < image.height; ++y) {
      auto* row = const_cast<JSAMPROW>(image.row(y));  // libjpeg only reads it
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    return true;
  }
};

}  // namespace

void encode_jpeg(const ImageView& image, int quality, std::vector<std::uint8_t>& to) {
  require(image.channels == 1 || image.channels == 3, "encode_jpeg: channels other than 1 and 3");
  Encoding encoding;
  if (!encoding.run(image, quality)) {
    fail(Exit::internal, "cannot encode {} x {} pixels as JPEG ({})", image.height, image.width,
         encoding.errors.text.data());
  }
  to.assign(encoding.buffer, encoding.buffer + encoding.bytes);
}

}  // namespace convoy
