// SPDX-License-Identifier: Apache-2.0
// Reads lines `PATH centre|whole|scaled SIDE POSITION OUT` from standard input, writes the SIDE x SIDE image that the
// loader makes of the file to OUT (centre: evaluation's; whole, scaled: training's resized crop of that position), and
// prints the region of the file that it shows: `Y X HEIGHT WIDTH DENOMINATOR`.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "data/image_maker.hpp"

namespace convoy {
namespace {

void answer(const std::string& line) {
  std::istringstream words(line);
  std::string path, how, out;
  Index side = 0, position = 0;
  words >> path >> how >> side >> position >> out;
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  AugmentSpec spec{.stored = Stored::files, .height = side, .width = side, .seed = 3};
  spec.train = how != "centre";
  spec.crop = Crop::resized;
  spec.scaled_decoding = how == "scaled";
  check_augment(spec);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side * 3));
  const DecodeStatus status = ImageMaker(spec).make(bytes, 0, position, pixels.data());
  Decoder decoder;
  decoder.open(bytes);
  const ImageSize size{decoder.header().height, decoder.header().width};
  Region region{0, 0, size.height, size.width};
  int denominator = 1;
  if (spec.train) region = random_region(spec, 0, position, size);
  if (spec.scaled_decoding) denominator = shrink_for(region, side, side);
  std::ofstream(out, std::ios::binary)
      .write(reinterpret_cast<const char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
  std::printf("%s %ld %ld %ld %ld %d\n", fault_name(status.fault), static_cast<long>(region.y),
              static_cast<long>(region.x), static_cast<long>(region.height), static_cast<long>(region.width),
              denominator);
}

}  // namespace
}  // namespace convoy

int main() {
  for (std::string line; std::getline(std::cin, line);) convoy::answer(line);
}
