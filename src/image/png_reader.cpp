// SPDX-License-Identifier: Apache-2.0
#include "image/png_reader.hpp"

#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "image/orient.hpp"

namespace convoy {
namespace {

/// The orientation in a chunk of EXIF, which may stand before or behind the pixels.
std::uint8_t find_exif(std::span<const std::uint8_t> file) {
  constexpr std::size_t signature = 8, frame = 12;  // of a chunk: length, kind, checksum
  for (std::size_t at = signature; at + frame <= file.size();) {
    const std::uint32_t bytes = file[at] << 24U | file[at + 1] << 16U | file[at + 2] << 8U | file[at + 3];
    if (bytes > file.size() - at - frame) break;
    if (std::memcmp(&file[at + 4], "eXIf", 4) == 0) return find_orientation(file.subspan(at + 8, bytes));
    at += bytes + frame;
  }
  return 1;
}

/// One file's state. libpng leaves by longjmp: the functions that call it have no locals with destructors.
class Reading {
 public:
  explicit Reading(std::span<const std::uint8_t> file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~Reading() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  DecodeStatus read_header(ImageHeader& header) {
    if (info_ == nullptr) return {Fault::damaged, "libpng found no memory"};
    if (setjmp(png_jmpbuf(png_)) != 0) return status();  // NOLINT(cert-err52-cpp): libpng's only way out
    png_set_read_fn(png_, this, on_read);
    // Larger images are refused by size, with our words; libpng's own limit would say less.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(png_, png_alloc_size_t{16} << 20);
    png_read_info(png_, info_);
    const int colour = png_get_color_type(png_, info_);
    header = {};
    header.format = ImageFormat::png;
    header.height = png_get_image_height(png_, info_);
    header.width = png_get_image_width(png_, info_);
    header.grey = (colour & ~PNG_COLOR_MASK_ALPHA) == PNG_COLOR_TYPE_GRAY;
    header.palette = (colour & PNG_COLOR_MASK_PALETTE) != 0;
    header.alpha = (colour & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    header.deep = png_get_bit_depth(png_, info_) == 16;
    header.orientation = find_exif(file_);
    return status();
  }

  /// Call it after read_header.
  DecodeStatus read_pixels(Image& to) {
    if (setjmp(png_jmpbuf(png_)) != 0) return status();  // NOLINT(cert-err52-cpp)
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    to.reshape(png_get_image_height(png_, info_), png_get_image_width(png_, info_), 3);
    if (png_get_rowbytes(png_, info_) != static_cast<png_size_t>(to.width) * 3) png_error(png_, "unexpected layout");
    for (int pass = 0; pass < passes; ++pass) {
      for (Index y = 0; y < to.height; ++y) png_read_row(png_, to.row(y), nullptr);
    }
    png_read_end(png_, nullptr);
    return status();
  }

  DecodeStatus status() const { return {fault_, text_.data()}; }

 private:
  static Reading& self(png_structp png) { return *static_cast<Reading*>(png_get_error_ptr(png)); }

  static void on_read(png_structp png, png_bytep to, png_size_t bytes) {
    Reading& reading = self(png);
    if (reading.file_.size() - reading.at_ < bytes) {
      reading.fault_ = Fault::truncated;
      png_error(png, "the file ends early");
    }
    std::memcpy(to, reading.file_.data() + reading.at_, bytes);
    reading.at_ += bytes;
  }
  static void on_warning(png_structp png, png_const_charp text) {
    Reading& reading = self(png);
    if (reading.text_[0] == '\0') std::snprintf(reading.text_.data(), reading.text_.size(), "%s", text);
  }
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    Reading& reading = self(png);
    if (reading.fault_ == Fault::none) reading.fault_ = Fault::damaged;
    std::snprintf(reading.text_.data(), reading.text_.size(), "%s", text);
    png_longjmp(png, 1);
  }

  std::span<const std::uint8_t> file_;
  std::size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Fault fault_ = Fault::none;
  std::array<char, 200> text_{};
};

}  // namespace

DecodeStatus read_png_header(std::span<const std::uint8_t> file, ImageHeader& header) {
  return Reading(file).read_header(header);
}

DecodeStatus read_png(std::span<const std::uint8_t> file, Image& to) {
  Reading reading(file);
  ImageHeader header;
  if (DecodeStatus status = reading.read_header(header); !status.ok()) return status;
  return reading.read_pixels(to);
}

}  // namespace convoy
