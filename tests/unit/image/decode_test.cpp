// SPDX-License-Identifier: Apache-2.0
#include "image/decode.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "image/jpeg.hpp"
#include "image/orient.hpp"

namespace convoy {
namespace {

Image picture(Index height, Index width, Index channels = 3) {
  Image image;
  image.reshape(height, width, channels);
  for (Index y = 0; y < height; ++y) {
    for (Index x = 0; x < width; ++x) {
      for (Index c = 0; c < channels; ++c) {
        const double wave = std::sin(0.11 * static_cast<double>(y * (c + 1))) + std::cos(0.07 * static_cast<double>(x));
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>(128 + 60 * wave + static_cast<double>((x * y) % 7));
      }
    }
  }
  return image;
}

std::vector<std::uint8_t> jpeg_of(const Image& image, int quality = 90) {
  std::vector<std::uint8_t> bytes;
  encode_jpeg(image.view(), quality, bytes);
  return bytes;
}

/// With an APP1 marker of this orientation after the start of the image.
std::vector<std::uint8_t> turned_jpeg(const Image& image, std::uint8_t orientation) {
  std::vector<std::uint8_t> bytes = jpeg_of(image);
  const std::vector<std::uint8_t> exif{0xFF, 0xE1, 0, 34, 'E', 'x',         'i', 'f', 0,    0,    'M', 'M',
                                       0,    42,   0, 0,  0,   8,           0,   1,   0x01, 0x12, 0,   3,
                                       0,    0,    0, 1,  0,   orientation, 0,   0,   0,    0,    0,   0};
  bytes.insert(bytes.begin() + 2, exif.begin(), exif.end());
  return bytes;
}

Image decoded(Decoder& decoder, const std::vector<std::uint8_t>& file) {
  Image image;
  DecodeStatus status = decoder.open(file);
  EXPECT_TRUE(status.ok()) << status.reason;
  status = decoder.decode(image);
  EXPECT_TRUE(status.ok()) << status.reason;
  return image;
}

TEST(Decode, NamesTiffFilesOfBothByteOrders) {
  Decoder decoder;
  const std::vector<std::vector<std::uint8_t>> tiff{{'M', 'M', 0, 42, 0, 0, 0, 8}, {'I', 'I', 42, 0, 8, 0, 0, 0}};
  for (const auto& file : tiff) {
    EXPECT_NE(decoder.open(file).reason.find("a TIFF file"), std::string::npos) << decoder.open(file).reason;
  }
  for (const auto& file : std::vector<std::vector<std::uint8_t>>{{'M', 'M', 'M', 42, 0, 0, 0, 8}, {'I', 'I', '*'}}) {
    EXPECT_EQ(decoder.open(file).reason.find("TIFF"), std::string::npos) << decoder.open(file).reason;
  }
}

TEST(Decode, RegionsAreThePixelsOfTheWhole) {
  Decoder decoder;
  const ImageSize sizes[] = {{97, 131}, {64, 200}, {15, 15}};
  for (const auto& [height, width] : sizes) {
    for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
      const auto file = turned_jpeg(picture(height, width), orientation);
      const Image whole = decoded(decoder, file);
      const ImageHeader header = decoder.header();
      EXPECT_EQ(header.height, orientation >= 5 ? width : height);
      const Region regions[] = {{0, 0, 1, 1},
                                {0, 0, header.height, header.width},
                                {header.height - 1, header.width - 1, 1, 1},
                                {3, 5, 8, 9},
                                {header.height / 2, header.width / 3, header.height / 3 + 1, header.width / 2}};
      for (const Region& region : regions) {
        ASSERT_TRUE(decoder.open(file).ok());
        Image part;
        DecodedRegion place;
        ASSERT_TRUE(decoder.decode_region(region, 1, part, place).ok());
        EXPECT_EQ(place.wanted, region);
        for (Index y = 0; y < region.height; ++y) {
          for (Index i = 0; i < region.width * 3; ++i) {
            ASSERT_EQ(part.row(y)[i], whole.row(region.y + y)[region.x * 3 + i])
                << height << "x" << width << " orientation " << int{orientation} << " row " << y << " byte " << i;
          }
        }
      }
    }
  }
}

TEST(Decode, ShrinksByPowersOfTwo) {
  Decoder decoder;
  const auto file = jpeg_of(picture(203, 305), 95);
  const Image whole = decoded(decoder, file);
  for (const int denominator : {2, 4, 8}) {
    ASSERT_TRUE(decoder.open(file).ok());
    Image part;
    DecodedRegion place;
    const Region region{33, 50, 120, 160};
    ASSERT_TRUE(decoder.decode_region(region, denominator, part, place).ok());
    EXPECT_EQ(place.denominator, denominator);
    EXPECT_EQ(place.wanted.y, 33 / denominator);
    EXPECT_EQ(place.wanted.height, (33 + 120 + denominator - 1) / denominator - 33 / denominator);
    ASSERT_EQ(part.height, place.wanted.height);
    ASSERT_EQ(part.width, place.wanted.width);
    double gap = 0;
    for (Index y = 0; y < part.height; ++y) {
      for (Index x = 0; x < part.width; ++x) {
        double sum = 0, count = 0;
        for (Index i = 0; i < denominator; ++i) {
          for (Index j = 0; j < denominator; ++j) {
            const Index at_y = (place.wanted.y + y) * denominator + i, at_x = (place.wanted.x + x) * denominator + j;
            if (at_y >= whole.height || at_x >= whole.width) continue;
            sum += whole.row(at_y)[at_x * 3];
            ++count;
          }
        }
        gap += std::abs(sum / count - part.row(y)[x * 3]);
      }
    }
    EXPECT_LT(gap / static_cast<double>(part.height * part.width), 2.5);
  }
  EXPECT_EQ(shrink_for({0, 0, 500, 448}, 224, 224), 2);
  EXPECT_EQ(shrink_for({0, 0, 500, 447}, 224, 224), 1);
  EXPECT_EQ(shrink_for({0, 0, 5000, 4000}, 224, 224), 8);
}

TEST(Decode, Orientations) {
  // A 2 x 3 image numbered row by row, as each orientation shows it upright.
  Image stored;
  stored.reshape(2, 3, 1);
  stored.pixels = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint8_t> expected[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                                {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                                {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
    Image upright;
    make_upright(stored, orientation, upright);
    EXPECT_EQ(upright.pixels, expected[orientation - 1]) << int{orientation};
    EXPECT_EQ(upright.height, orientation >= 5 ? 3 : 2);
  }
}

TEST(Decode, ExifThatMakesNoSenseIsUpright) {
  const std::vector<std::vector<std::uint8_t>> cases{
      {},
      {'I', 'I', 42, 0},
      {'I', 'M', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0},
      {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 9, 0, 0, 0},
      {'I', 'I', 42, 0, 255, 255, 255, 255},
      {'I', 'I', 42, 0, 8, 0, 0, 0, 255, 255, 0x12, 1}};
  for (const auto& bytes : cases) EXPECT_EQ(find_orientation(bytes), 1);
  const std::vector<std::uint8_t> turned{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  EXPECT_EQ(find_orientation(turned), 6);
}

TEST(Decode, AnImageThatLacksOnlyItsEndMarkerIsWhole) {
  Decoder decoder;
  Image image;
  std::vector<std::uint8_t> file = jpeg_of(picture(40, 56));
  const Image whole = decoded(decoder, file);
  file.resize(file.size() - 2);
  DecodeStatus status = decoder.open(file);
  ASSERT_TRUE(status.ok());
  status = decoder.decode(image);
  EXPECT_TRUE(status.ok()) << status.reason;
  EXPECT_FALSE(status.reason.empty());  // it is told
  EXPECT_EQ(image.pixels, whole.pixels);
  // Without its last bytes of data it lacks pixels.
  for (const std::size_t lost : {8U, 40U, 400U}) {
    std::vector<std::uint8_t> cut(file.begin(), file.end() - static_cast<std::ptrdiff_t>(lost));
    ASSERT_TRUE(decoder.open(cut).ok());
    EXPECT_EQ(decoder.decode(image).fault, Fault::truncated) << lost;
  }
}

TEST(Decode, ExifOrientationOfAnyWholeType) {
  const std::vector<std::uint8_t> little{'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 4, 0, 1, 0, 0, 0, 6, 0, 0, 0};
  const std::vector<std::uint8_t> big{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 4, 0, 0, 0, 1, 0, 0, 0, 8};
  const std::vector<std::uint8_t> byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 1, 0, 0, 0, 1, 3, 0, 0, 0};
  EXPECT_EQ(find_orientation(little), 6);
  EXPECT_EQ(find_orientation(big), 8);
  EXPECT_EQ(find_orientation(byte), 3);
}

TEST(Decode, GreyAndLimits) {
  Decoder rgb, grey(Channels::grey);
  const auto file = jpeg_of(picture(20, 30, 1));
  const Image three = decoded(rgb, file), one = decoded(grey, file);
  EXPECT_TRUE(rgb.header().grey);
  EXPECT_EQ(three.channels, 3);
  EXPECT_EQ(one.channels, 1);
  for (std::size_t i = 0; i < three.pixels.size(); ++i) ASSERT_EQ(three.pixels[i], one.pixels[i / 3]);
  DecodeLimits limits;
  limits.max_side = 29;
  EXPECT_EQ(Decoder(Channels::rgb, limits).open(file).fault, Fault::too_large);
  limits = {};
  limits.max_pixels = 599;
  EXPECT_EQ(Decoder(Channels::rgb, limits).open(file).fault, Fault::too_large);
  limits.max_pixels = 600;
  EXPECT_TRUE(Decoder(Channels::rgb, limits).open(file).ok());
}

TEST(Decode, AnyCutIsAFault) {
  Decoder decoder;
  const auto file = jpeg_of(picture(48, 64));
  for (std::size_t bytes = 0; bytes < file.size(); bytes += 7) {
    Image image;
    DecodeStatus status = decoder.open({file.data(), bytes});
    if (status.ok()) status = decoder.decode(image);
    EXPECT_FALSE(status.ok()) << bytes << " of " << file.size();
  }
  EXPECT_EQ(decoded(decoder, file).height, 48);  // and the decoder still works
}

}  // namespace
}  // namespace convoy
