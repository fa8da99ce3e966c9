// SPDX-License-Identifier: Apache-2.0
#include "core/progress.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace convoy {
namespace {

TEST(ProgressTest, TellsWhereTheMainThreadIs) {
  Progress progress;
  progress.at(3, 120);
  progress.enter(Activity::compute);
  progress.wait_begins("gradient bucket 3");
  ProgressSnapshot now = progress.read();
  EXPECT_EQ(now.activity, Activity::compute);
  EXPECT_EQ(now.epoch, 3);
  EXPECT_EQ(now.step, 120);
  EXPECT_STREQ(now.operation.data(), "gradient bucket 3");
  EXPECT_TRUE(now.waiting);
  EXPECT_EQ(now.exit, -1);
  progress.wait_ends();
  progress.leave(5);
  const ProgressSnapshot later = progress.read();
  EXPECT_FALSE(later.waiting);
  EXPECT_STREQ(later.operation.data(), "");
  EXPECT_GT(later.marks, now.marks);
  EXPECT_EQ(later.exit, 5);
}

TEST(ProgressTest, AnActivityEndsWithItsScope) {
  progress().enter(Activity::compute);
  {
    const ActivityScope scope(Activity::checkpoint);
    EXPECT_EQ(progress().read().activity, Activity::checkpoint);
  }
  EXPECT_EQ(progress().read().activity, Activity::compute);
}

TEST(ProgressTest, CutsLongTexts) {
  SharedText text;
  text.store(std::string(200, 'x').c_str());
  EXPECT_EQ(std::string(text.load().data()), std::string(SharedText::capacity - 1, 'x'));
}

/// A reader never sees half of one text and half of another.
TEST(ProgressTest, TextsAreWhole) {
  SharedText text;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'a'; !stop.load(); c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      text.store(std::string(60, c).c_str());
      std::this_thread::yield();
    }
  });
  for (int seen = 0; seen < 100'000;) {
    const std::string copy = text.load().data();
    if (copy.empty()) {  // the writer has not begun
      std::this_thread::yield();
      continue;
    }
    ++seen;
    EXPECT_EQ(copy, std::string(60, copy.front()));
    if (HasFailure()) break;
  }
  stop.store(true);
  writer.join();
}

TEST(BlockingIoTest, NamesTheLongest) {
  char text[300];
  EXPECT_EQ(describe_longest_io(text, sizeof text), 0U);
  const std::uint64_t before = progress().read().marks;
  {
    const BlockingIo first("read", "/data/train-00003.h5");
    const BlockingIo second("write", "/run/last.h5");
    const std::string longest(text, describe_longest_io(text, sizeof text));
    EXPECT_EQ(longest, "read of '/data/train-00003.h5' for 0.0 s");
  }
  EXPECT_EQ(describe_longest_io(text, sizeof text), 0U);
  EXPECT_EQ(progress().read().marks, before + 4) << "both ends of a call are progress";
}

TEST(BlockingIoTest, MoreCallsThanPlacesDoNoHarm) {
  std::vector<std::unique_ptr<BlockingIo>> calls;
  calls.reserve(100);
  for (int i = 0; i < 100; ++i) calls.push_back(std::make_unique<BlockingIo>("read", std::string(500, 'p')));
  char text[64];
  EXPECT_EQ(describe_longest_io(text, sizeof text), sizeof text - 1);
}

}  // namespace
}  // namespace convoy
