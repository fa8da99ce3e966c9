// SPDX-License-Identifier: Apache-2.0
#include "scaling/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.hpp"

namespace convoy {
namespace {

/// Of a link with known terms, each off by up to `noise` of itself.
std::vector<TimedSum> timings_of(double message, double byte, int ranks, double noise, int repeats) {
  Random random(21, Stream::synthetic, static_cast<std::uint64_t>(ranks), 0);
  std::vector<TimedSum> all;
  for (double bytes = 4096; bytes <= 1 << 26; bytes *= 4)
    for (int i = 0; i < repeats; ++i) {
      TimedSum one{.messages = library_messages(ranks), .bytes = share_of_ring(ranks) * bytes};
      const double off = 1 + noise * (2 * static_cast<double>(random.uniform()) - 1);
      one.seconds = (message * one.messages + byte * one.bytes) * off;
      all.push_back(one);
    }
  return all;
}

TEST(FitTest, CountsMessagesAndShares) {
  EXPECT_EQ(library_messages(1), 0);
  EXPECT_EQ(library_messages(2), 2);
  EXPECT_EQ(library_messages(3), 4);
  EXPECT_EQ(library_messages(8), 6);
  EXPECT_EQ(library_messages(9), 8);
  EXPECT_EQ(tree_messages(1), 0);
  EXPECT_EQ(tree_messages(5), 8);
  EXPECT_EQ(share_of_ring(1), 0);
  EXPECT_EQ(share_of_ring(4), 1.5);
}

TEST(FitTest, FindsTheTermsOfALink) {
  for (const auto& [message, byte] : {std::pair{2e-6, 1 / 25e9}, {50e-6, 1 / 1e9}, {1e-6, 1 / 200e9}})
    for (const int ranks : {2, 16}) {
      const Link exact = fit_link(timings_of(message, byte, ranks, 0, 1));
      EXPECT_NEAR(exact.seconds_per_message.value, message, 1e-9 * message);
      EXPECT_NEAR(exact.seconds_per_byte.value, byte, 1e-9 * byte);
      EXPECT_LT(exact.seconds_per_byte.error, 1e-6);
      EXPECT_TRUE(exact.measured);
      // Each timing 5 % off: the terms within 1 %, and within the error that is told.
      const Link noisy = fit_link(timings_of(message, byte, ranks, 0.05, 100));
      EXPECT_NEAR(noisy.seconds_per_message.value, message, 0.01 * message);
      EXPECT_NEAR(noisy.seconds_per_byte.value, byte, 0.01 * byte);
      EXPECT_GT(noisy.seconds_per_byte.error, 0.001);
      EXPECT_LT(noisy.seconds_per_byte.error, 0.02);
    }
}

TEST(FitTest, HasNoTermBelowZero) {
  const std::vector<TimedSum> no_latency{{2, 1e6, 1.0e-3}, {2, 1e7, 1.2e-2}, {2, 1e8, 1.3e-1}};
  const Link link = fit_link(no_latency);
  EXPECT_EQ(link.seconds_per_message.value, 0);
  EXPECT_NEAR(link.seconds_per_byte.value, 1.15e-9, 0.2e-9);
  const std::vector<TimedSum> no_bytes{{2, 1e3, 2e-6}, {2, 1e4, 1.9e-6}, {2, 1e5, 1.5e-6}};
  EXPECT_EQ(fit_link(no_bytes).seconds_per_byte.value, 0);
  EXPECT_GT(fit_link(no_bytes).seconds_per_message.value, 0);
}

TEST(FitTest, OverlapIsThePartThatIsHidden) {
  EXPECT_EQ(overlap_of(10, 10, 10), 1);
  EXPECT_EQ(overlap_of(10, 10, 20), 0);
  EXPECT_EQ(overlap_of(10, 10, 25), 0);
  EXPECT_EQ(overlap_of(10, 4, 12), 0.5);
  EXPECT_EQ(overlap_of(10, 0, 10), 0);
}

}  // namespace
}  // namespace convoy
