// SPDX-License-Identifier: Apache-2.0
// Mean and variance of a batch on the CPU: loops over pixels, images, and the exchange of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/instruction_set.hpp"
#include "backend/cpu/operations/group_loops.hpp"
#include "backend/rules/exchanged_sum.hpp"
#include "support/hard_channels.hpp"

namespace convoy::cpu {
namespace {

struct Moments {
  double mean = 0, spread = 0;
};

template <class At>
Moments moments_of(Index count, const At& at) {
  Moments exact;
  for (Index i = 0; i < count; ++i) exact.mean += static_cast<double>(at(i)) / static_cast<double>(count);
  for (Index i = 0; i < count; ++i) exact.spread += std::pow(static_cast<double>(at(i)) - exact.mean, 2);
  return exact;
}

void expect_near(const Moments& got, const Moments& exact) {
  EXPECT_NEAR(got.mean, exact.mean, fp32_unit * std::abs(exact.mean));
  EXPECT_NEAR(got.spread, exact.spread, variance_bound * exact.spread + 0x1p-42 * exact.mean * exact.mean);
}

/// `images` with one kind of channel each in every block; blocked or nhwc.
void expect_moments(Index height, Index width, Index channels, bool blocked) {
  constexpr Index images = 2;
  TensorLayout layout{.channels = channels, .height = height, .width = width};
  const Index pixels = layout.pixels();
  layout.pixel = blocked ? lanes : channels;
  layout.block = blocked ? lanes * pixels : lanes;
  layout.image = blocked ? layout.block * layout.blocks() : channels * pixels;
  std::vector<float> values(static_cast<std::size_t>(images * layout.image));
  const auto kind_of = [](Index c) { return hard_channels[static_cast<std::size_t>(c) % hard_channels.size()]; };
  for (Index n = 0; n < images; ++n)
    for (Index c = 0; c < channels; ++c)
      for (Index p = 0; p < pixels; ++p)
        values[static_cast<std::size_t>(n * layout.image + c / lanes * layout.block + p * layout.pixel + c % lanes)] =
            hard_pixel(kind_of(c), n * pixels + p, images * pixels);
  const Index rows = images * layout.padded_channels();
  std::vector<double> means(static_cast<std::size_t>(rows)), spreads(means), mean(means), spread(means);
  const Isa isa = find_instruction_set().isa;
  const StatisticsArgs args{.layout = layout, .value = values.data(), .means = means.data(), .spreads = spreads.data()};
  kernels_for<GroupKernels>(isa).statistics(args, 0, images * units_per_image(layout));
  kernels_for<ArrayKernels>(isa).fold_moments(means.data(), spreads.data(), images, layout.padded_channels(),
                                              static_cast<double>(pixels), mean.data(), spread.data(), 0,
                                              layout.padded_channels());
  for (Index c = 0; c < channels; ++c) {
    SCOPED_TRACE(fmt::format("{} x {}, {} channels, {}, channel {}", height, width, channels, blocked, c));
    expect_near({mean[static_cast<std::size_t>(c)], spread[static_cast<std::size_t>(c)]},
                moments_of(images * pixels, [&](Index i) { return hard_pixel(kind_of(c), i, images * pixels); }));
  }
}

TEST(BatchMoments, HoldWhereTheMeanIsLarge) {
  for (const bool blocked : {false, true})
    for (const Index channels : {7, 64}) {
      expect_moments(1, 1, channels, blocked);
      expect_moments(7, 7, channels, blocked);
      expect_moments(37, 41, channels, blocked);
    }
  expect_moments(512, 512, 7, false);  // a stem's output at 1024 px
  expect_moments(512, 512, 7, true);
}

TEST(BatchMoments, SurviveTheExchangeOfRanks) {
  for (const HardChannel kind : hard_channels)
    for (const Index ranks : {2, 3, 1000}) {
      SCOPED_TRACE(fmt::format("kind {}, {} ranks", static_cast<int>(kind), ranks));
      constexpr Index pixels = 49;
      float sum[exchanged_parts] = {}, square[exchanged_parts] = {};
      for (Index rank = 0; rank < ranks; ++rank) {
        double own[2] = {};
        for (Index p = 0; p < pixels; ++p) {
          const auto x = static_cast<double>(hard_pixel(kind, rank * pixels + p, ranks * pixels));
          own[0] += x;
          own[1] += x * x;
        }
        float parts[2][exchanged_parts];
        for (int t = 0; t < 2; ++t) write_parts(own[t], parts[t], 1);
        for (int part = 0; part < exchanged_parts; ++part) {
          sum[part] += parts[0][part];
          square[part] += parts[1][part];
        }
      }
      const auto count = static_cast<double>(ranks * pixels);
      const double mean = read_parts(sum, 1) / count;
      const Moments exact = moments_of(ranks * pixels, [&](Index i) { return hard_pixel(kind, i, ranks * pixels); });
      EXPECT_NEAR(mean, exact.mean, fp32_unit * std::abs(exact.mean));
      EXPECT_NEAR(read_parts(square, 1) / count - mean * mean, exact.spread / count,
                  variance_bound * exact.spread / count + 0x1p-42 * exact.mean * exact.mean);
    }
}

}  // namespace
}  // namespace convoy::cpu
