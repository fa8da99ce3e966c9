// SPDX-License-Identifier: Apache-2.0
#include "image/resize.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "core/topology.hpp"
#include "image/resize_kernels.hpp"

namespace convoy {
namespace {

Image noise(Index height, Index width, Index channels, std::uint32_t seed) {
  Image image;
  image.reshape(height, width, channels);
  for (auto& value : image.pixels) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<std::uint8_t>(seed >> 24);
  }
  return image;
}

std::vector<std::uint8_t> resized(const ImageView& in, Index height, Index width) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(height * width * in.channels));
  Resizer().resize(in, height, width, out.data());
  return out;
}

/// The definition, in double and without rounding between the passes.
double exact_value(const ImageView& in, Index height, Index width, Index y, Index x, Index c) {
  const auto weights = [](Index input, Index size, Index at) {
    const double scale = static_cast<double>(input) / static_cast<double>(size), support = std::max(scale, 1.0);
    const double centre = (static_cast<double>(at) + 0.5) * scale;
    std::vector<double> all(static_cast<std::size_t>(input));
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = std::max(0.0, 1.0 - std::abs((static_cast<double>(i) + 0.5 - centre) / support));
    }
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    for (double& weight : all) weight /= sum;
    return all;
  };
  const auto of_rows = weights(in.height, height, y), of_columns = weights(in.width, width, x);
  double sum = 0;
  for (Index i = 0; i < in.height; ++i) {
    for (Index j = 0; j < in.width; ++j) {
      sum += of_rows[static_cast<std::size_t>(i)] * of_columns[static_cast<std::size_t>(j)] *
             in.row(i)[j * in.channels + c];
    }
  }
  return sum;
}

TEST(Resize, FollowsTheDefinition) {
  const ImageSize cases[] = {{7, 9}, {16, 16}, {40, 31}, {1, 5}};
  const ImageSize targets[] = {{3, 4}, {16, 16}, {20, 7}, {50, 33}, {1, 1}};
  for (const Index channels : {1, 3, 4}) {
    for (const ImageSize& from : cases) {
      const Image image = noise(from.height, from.width, channels, 5);
      for (const ImageSize& to : targets) {
        const auto out = resized(image.view(), to.height, to.width);
        for (Index y = 0; y < to.height; ++y) {
          for (Index x = 0; x < to.width; ++x) {
            for (Index c = 0; c < channels; ++c) {
              const double expected = exact_value(image.view(), to.height, to.width, y, x, c);
              // Two roundings to 8 bits: the first is averaged by the second pass.
              EXPECT_NEAR(out[static_cast<std::size_t>((y * to.width + x) * channels + c)], expected, 1.01);
            }
          }
        }
      }
    }
  }
}

/// Both passes by one kind of kernels.
std::vector<std::uint8_t> resized_by(const ResizeKernels& kernels, const ImageView& in, Index height, Index width) {
  Resizer::Axis rows, columns;
  fill_axis(columns, in.width, 0, static_cast<double>(in.width), width);
  fill_axis(rows, in.height, 0, static_cast<double>(in.height), height);
  const Index row_bytes = width * in.channels;
  std::vector<std::uint8_t> between(static_cast<std::size_t>(in.height * row_bytes));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(height * row_bytes));
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>(strip_rows * (in.width * in.channels + row_bytes)));
  for (Index y = 0; y < in.height; y += strip_rows) {
    kernels.columns(columns, {.in = in.row(y),
                              .in_row_bytes = in.row_bytes,
                              .out = between.data() + y * row_bytes,
                              .out_row_bytes = row_bytes,
                              .rows = std::min(strip_rows, in.height - y),
                              .channels = in.channels,
                              .scratch = scratch.data()});
  }
  for (Index y = 0; y < height; ++y) {
    const auto i = static_cast<std::size_t>(y);
    kernels.rows(rows.weights.data() + y * rows.taps, rows.count[i], between.data() + rows.first[i] * row_bytes,
                 row_bytes, row_bytes, out.data() + y * row_bytes);
  }
  return out;
}

TEST(Resize, KernelsGiveTheSameBytes) {
  const auto kernels = resize_kernels();
  if (kernels.size() == 1) GTEST_SKIP() << "this CPU runs the generic kernel alone";
  if (max_cpu_isa() == CpuIsa::avx2) {
    EXPECT_STREQ(kernels.back().name, "AVX2");
  }
  for (const Index channels : {1, 2, 3, 4}) {
    for (const Index side : {1, 2, 5, 16, 17, 100, 224}) {
      for (const ImageSize& from : {ImageSize{33, 47}, ImageSize{300, 275}, ImageSize{3, 900}, ImageSize{2, 3}}) {
        const Image image = noise(from.height, from.width, channels, 9);
        const auto expected = resized_by(kernels.front(), image.view(), side, side + 3);
        for (const ResizeKernels& other : kernels.subspan(1)) {
          ASSERT_EQ(resized_by(other, image.view(), side, side + 3), expected)
              << other.name << ", " << channels << " channels, " << from.height << "x" << from.width << " to " << side;
        }
      }
    }
  }
}

TEST(Resize, PartsAndBoxes) {
  const Image image = noise(60, 80, 3, 2);
  const Region region{10, 20, 31, 37};
  Image part;
  part.reshape(region.height, region.width, 3);
  for (Index y = 0; y < region.height; ++y) {
    std::copy_n(image.view().part(region).row(y), region.width * 3, part.row(y));
  }
  // A part is resized as if nothing lay around it.
  EXPECT_EQ(resized(image.view().part(region), 24, 24), resized(part.view(), 24, 24));
  // A box looks at its surroundings: of an even ramp it gives the ramp itself.
  Image ramp;
  ramp.reshape(4, 200, 3);
  for (std::size_t i = 0; i < ramp.pixels.size(); ++i) ramp.pixels[i] = static_cast<std::uint8_t>(i / 3 % 200);
  std::vector<std::uint8_t> out(4 * 100 * 3);
  Resizer().resize(ramp.view(), {0, 50, 4, 100}, 4, 100, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 50 + i / 3 % 100);
  EXPECT_EQ(resized(image.view(), 60, 80), image.pixels);
  EXPECT_THROW(resized(image.view(), 0, 5), std::exception);
}

TEST(Resize, Sizes) {
  EXPECT_EQ(with_short_side({333, 500}, 256), (ImageSize{256, 384}));
  EXPECT_EQ(with_short_side({500, 333}, 256), (ImageSize{384, 256}));
  EXPECT_EQ(with_short_side({10, 10}, 5), (ImageSize{5, 5}));
  EXPECT_EQ(within_long_side({1000, 500}, 400), (ImageSize{400, 200}));
  EXPECT_EQ(within_long_side({3, 5000}, 500), (ImageSize{1, 500}));
  EXPECT_EQ(within_long_side({300, 200}, 400), (ImageSize{300, 200}));
  // Python's round(): 0.5 -> 0, 1.5 -> 2, 2.5 -> 2.
  EXPECT_EQ(centre_region({5, 7}, 4, 4), (Region{0, 2, 4, 4}));
  EXPECT_EQ(centre_region({9, 8}, 4, 4), (Region{2, 2, 4, 4}));
}

}  // namespace
}  // namespace convoy
