// SPDX-License-Identifier: Apache-2.0
#include "metrics/event_file.hpp"

#include <gtest/gtest.h>
#include <tensorboard.pb.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "core/errors.hpp"
#include "io/seal.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint32_t unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

/// Takes a file apart and checks both CRCs of every record.
std::vector<tensorboard::Event> read_events(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<tensorboard::Event> events;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    std::uint32_t length_crc = 0, data_crc = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&length_crc, bytes.data() + at + 8, 4);
    EXPECT_EQ(unmasked(length_crc), crc32c(bytes.data() + at, 8));
    if (at + 16 + length > bytes.size()) {
      ADD_FAILURE() << "a record is longer than the file";
      break;
    }
    const std::string data = bytes.substr(at + 12, length);
    std::memcpy(&data_crc, bytes.data() + at + 12 + length, 4);
    EXPECT_EQ(unmasked(data_crc), crc32c(data.data(), data.size()));
    EXPECT_TRUE(events.emplace_back().ParseFromString(data));
    at += 16 + length;
  }
  return events;
}

// CRC32C("123456789") = 0xe3069283, the check value of the catalogue of CRCs; both CRCs are masked: rotated right by
// 15, plus a constant.
TEST(EventFile, FramesARecordAsTfRecord) {
  const std::string length("\x09\0\0\0\0\0\0\0", 8), length_crc = "\x37\xf9\x71\x39", crc = "\xe5\xb0\x8a\xc7";
  EXPECT_EQ(frame_record("123456789"), length + length_crc + "123456789" + crc);
}

TEST(EventFile, ParsesBackWithItsCheckSums) {
  const TempFolder folder;
  std::string path;
  const auto seconds = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  };
  const double before = seconds().count();
  {
    EventFile file(folder / "made/tensorboard", 0);
    path = file.path();
    file.write(20, {{"train/loss", 1.25}, {"train/lr", 0.1}});
    const float values[] = {-1, 0, 0, 3};
    file.write(40, "gradients", {summarise("conv1.weight", values, 4, 2)});
    const auto while_open = read_events(path);
    ASSERT_EQ(while_open.size(), 4U) << "events are not flushed";
  }
  const auto events = read_events(path);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[2].step(), 20);
  EXPECT_EQ(events[3].step(), 40);
  for (const auto& event : events) {
    EXPECT_GE(event.wall_time(), before);
    EXPECT_LE(event.wall_time(), seconds().count());
  }
  ASSERT_EQ(events[2].summary().value_size(), 2);
  EXPECT_EQ(events[2].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 1.25F);
  EXPECT_EQ(events[2].summary().value(1).simple_value(), 0.1F);
  ASSERT_EQ(events[3].summary().value_size(), 2);
  const auto& histogram = events[3].summary().value(0);
  EXPECT_EQ(histogram.tag(), "gradients/conv1.weight");
  EXPECT_EQ(histogram.histogram().num(), 4);
  EXPECT_EQ(histogram.histogram().min(), -1);
  EXPECT_EQ(histogram.histogram().max(), 3);
  EXPECT_EQ(histogram.histogram().sum(), 2);
  EXPECT_NEAR(histogram.histogram().sum_squares(), 10, 1e-12);
  ASSERT_EQ(histogram.histogram().bucket_size(), 2);
  EXPECT_EQ(histogram.histogram().bucket_limit(0), 1);
  EXPECT_EQ(histogram.histogram().bucket(0), 3);
  EXPECT_EQ(histogram.histogram().bucket_limit(1), 3);
  EXPECT_EQ(histogram.histogram().bucket(1), 1);
  EXPECT_EQ(events[3].summary().value(1).tag(), "gradients_norm/conv1.weight");
  EXPECT_NEAR(events[3].summary().value(1).simple_value(), 3.1622777, 1e-6);
}

TEST(EventFile, AResumedRunsFileSortsLastAndNamesItsFirstStep) {
  const TempFolder folder;
  const EventFile first(folder.path(), 0), second(folder.path(), 121), third(folder.path(), 131);
  EXPECT_LT(first.path(), second.path());
  EXPECT_LT(second.path(), third.path());
  EXPECT_EQ(read_events(second.path()).at(1).step(), 121);
}

TEST(EventFile, AnUnusableFolderIsSaidOnceAndTheRunGoesOn) {
  const TempFolder folder;
  std::ofstream(folder / "file") << "not a folder";
  testing::internal::CaptureStderr();
  EventFile file(folder / "file/tensorboard", 0);
  file.write(1, {{"loss", 2.0}});
  file.write(2, {{"loss", 1.0}});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(folder / "file/tensorboard"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace convoy
