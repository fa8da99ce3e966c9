// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image file: decoded whole, in a region, shrunk, resized. Faults are values; nothing may throw but for
// memory.
#include <cstdint>
#include <cstdlib>

#include "image/decode.hpp"
#include "image/resize.hpp"
#include "tests/fuzz/counters.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace convoy;
  if (size < 4) return 0;
  // The last bytes choose what is done with the rest.
  const std::uint8_t* choice = data + size - 4;
  const std::span<const std::uint8_t> file(data, size - 4);
  DecodeLimits limits;
  limits.max_pixels = Index{1} << 20;
  limits.max_scans = 20;
  static Decoder rgb(Channels::rgb, limits), grey(Channels::grey, limits);
  Decoder& decoder = (choice[0] & 1) != 0 ? grey : rgb;
  Image image;
  if (!decoder.open(file).ok()) return 0;
  const ImageHeader header = decoder.header();
  if ((choice[0] & 2) != 0) {
    Region region{choice[1] * header.height / 256, choice[2] * header.width / 256, 1, 1};
    region.height = 1 + choice[3] * (header.height - region.y - 1) / 256;
    region.width = 1 + choice[3] * (header.width - region.x - 1) / 256;
    DecodedRegion decoded;
    const int denominator = 1 << ((choice[0] >> 2) & 3);
    if (!decoder.decode_region(region, denominator, image, decoded).ok()) return 0;
    if (image.height != decoded.wanted.height || image.width != decoded.wanted.width) std::abort();
  } else {
    if (!decoder.decode(image).ok()) return 0;
    if (image.height != header.height || image.width != header.width) std::abort();
  }
  ++inputs_read();
  static Resizer resizer;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(17 * 23 * image.channels));
  resizer.resize(image.view(), 17, 23, out.data());
  return 0;
}
