// SPDX-License-Identifier: Apache-2.0
// image_probe FILE: reads lines `PATH CHANNELS short SIDE OUT` | `PATH CHANNELS to HEIGHT WIDTH OUT` | `PATH CHANNELS
// full OUT` from standard input, writes raw pixels to OUT and prints `HEIGHT WIDTH FAULT FLAGS REASON`.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "image/decode.hpp"
#include "image/resize.hpp"

namespace convoy {
namespace {

std::string flags_of(const ImageHeader& h) {
  std::string flags;
  if (h.grey) flags += "grey,";
  if (h.cmyk) flags += "cmyk,";
  if (h.palette) flags += "palette,";
  if (h.alpha) flags += "alpha,";
  if (h.deep) flags += "deep,";
  if (h.rotated()) flags += "rotated,";
  return flags.empty() ? "-" : flags;
}

void answer(const std::string& line, Resizer& resizer) {
  std::istringstream words(line);
  std::string path, how, out;
  Index channels = 3, height = 0, width = 0;
  words >> path >> channels >> how;
  if (how == "short") words >> height;
  if (how == "to") words >> height >> width;
  words >> out;
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  Decoder decoder(channels == 3 ? Channels::rgb : Channels::grey);
  Image image;
  DecodeStatus status = decoder.open(bytes);
  if (status.ok()) status = decoder.decode(image);
  if (status.ok() && how != "full") {
    ImageSize size{height, width};
    if (how == "short") size = with_short_side({image.height, image.width}, height);
    Image smaller;
    smaller.reshape(size.height, size.width, image.channels);
    resizer.resize(image.view(), size.height, size.width, smaller.pixels.data());
    image = smaller;
  }
  if (status.ok()) {
    std::ofstream(out, std::ios::binary)
        .write(reinterpret_cast<const char*>(image.pixels.data()), static_cast<std::streamsize>(image.pixels.size()));
  }
  std::printf("%ld %ld %s %s %s\n", static_cast<long>(image.height), static_cast<long>(image.width),
              status.ok() ? "ok" : fault_name(status.fault), flags_of(decoder.header()).c_str(), status.reason.c_str());
}

}  // namespace
}  // namespace convoy

int main() {
  convoy::Resizer resizer;
  for (std::string line; std::getline(std::cin, line);) convoy::answer(line, resizer);
}
