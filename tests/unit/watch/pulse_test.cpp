// SPDX-License-Identifier: Apache-2.0
#include "core/pulse.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/open_calls.hpp"

namespace convoy {
namespace {

TEST(PulseTest, TellsWhereTheMainThreadIs) {
  Pulse pulse;
  pulse.at(3, 120);
  pulse.enter(Activity::compute);
  pulse.wait_begins("gradient bucket 3");
  Whereabouts now = pulse.read();
  EXPECT_EQ(now.phase, Activity::compute);
  EXPECT_EQ(now.epoch, 3);
  EXPECT_EQ(now.step, 120);
  EXPECT_STREQ(now.operation.data(), "gradient bucket 3");
  EXPECT_TRUE(now.waiting);
  EXPECT_EQ(now.exit, -1);
  pulse.wait_ends();
  pulse.leave(5);
  const Whereabouts later = pulse.read();
  EXPECT_FALSE(later.waiting);
  EXPECT_STREQ(later.operation.data(), "");
  EXPECT_GT(later.beats, now.beats);
  EXPECT_EQ(later.exit, 5);
}

TEST(PulseTest, AnActivityEndsWithItsScope) {
  pulse().enter(Activity::compute);
  {
    const ActivityScope scope(Activity::checkpoint);
    EXPECT_EQ(pulse().read().phase, Activity::checkpoint);
  }
  EXPECT_EQ(pulse().read().phase, Activity::compute);
}

TEST(PulseTest, CutsLongTexts) {
  SharedText text;
  text.store(std::string(200, 'x').c_str());
  EXPECT_EQ(std::string(text.load().data()), std::string(SharedText::capacity - 1, 'x'));
}

/// A reader never sees half of one text and half of another.
TEST(PulseTest, TextsAreWhole) {
  SharedText text;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'a'; !stop.load(); c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      text.store(std::string(60, c).c_str());
      std::this_thread::yield();
    }
  });
  int seen = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (seen < 20000 && std::chrono::steady_clock::now() < end) {
    const std::string copy = text.load().data();
    if (copy.empty()) continue;
    ++seen;
    ASSERT_EQ(copy, std::string(60, copy.front()));
  }
  stop.store(true);
  writer.join();
  EXPECT_GT(seen, 1000);
}

TEST(OpenCallsTest, NamesTheLongest) {
  char text[300];
  EXPECT_EQ(describe_longest_call(text, sizeof text), 0U);
  const std::uint64_t before = pulse().read().beats;
  {
    const OpenCall first("read", "/data/train-00003.h5");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const OpenCall second("write", "/run/last.h5");
    const std::string longest(text, describe_longest_call(text, sizeof text));
    EXPECT_EQ(longest, "read of '/data/train-00003.h5' for 0.0 s");
  }
  EXPECT_EQ(describe_longest_call(text, sizeof text), 0U);
  EXPECT_EQ(pulse().read().beats, before + 4) << "both ends of a call are progress";
}

TEST(OpenCallsTest, MoreCallsThanPlacesDoNoHarm) {
  std::vector<std::unique_ptr<OpenCall>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(std::make_unique<OpenCall>("read", std::string(500, 'p')));
  char text[64];
  EXPECT_EQ(describe_longest_call(text, sizeof text), sizeof text - 1);
}

}  // namespace
}  // namespace convoy
