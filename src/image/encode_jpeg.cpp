// SPDX-License-Identifier: Apache-2.0
#include "image/encode_jpeg.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include <array>

#include "core/errors.hpp"

namespace convoy {
namespace {

struct Errors {
  jpeg_error_mgr base{};
  std::jmp_buf leave{};
  std::array<char, JMSG_LENGTH_MAX> text{};
};

/// libjpeg's own buffer, freed whatever happens.
struct Encoding {
  jpeg_compress_struct jpeg{};
  Errors errors;
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;

  Encoding() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = [](j_common_ptr common) {
      auto& own = *reinterpret_cast<Errors*>(common->err);
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
