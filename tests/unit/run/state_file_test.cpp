// SPDX-License-Identifier: Apache-2.0
#include "run/state_file.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/progress.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

double updated_in(const std::string& folder) {
  const auto state = read_run_state(folder);
  return state ? state->updated : 0;
}

/// Waits until the file was written after `time`; returns when.
double next_update(const std::string& folder, double time) {
  for (int i = 0; i < 600; ++i) {
    if (const double now = updated_in(folder); now > time) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return 0;
}

TEST(StateFile, WritingByTheClockIsNoProgressForTheWatchdog) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() + "/attempts");
  StateFile file(folder.path(), Fence({folder.path()}, 1), {.attempt = 1});
  const double first = next_update(folder.path(), 0);
  ASSERT_GT(first, 0);
  const auto beats = progress().read().marks;
  file.note([](RunState& state) { state.step = 7; });
  ASSERT_GT(next_update(folder.path(), first), first);
  EXPECT_EQ(progress().read().marks, beats);
}

TEST(StateFile, LastWordsAreWritten) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() + "/attempts");
  {
    StateFile file(folder.path(), Fence({folder.path()}, 1), {.attempt = 1});
    file.update([](RunState& state) { state.result = Result::finished; });
  }
  EXPECT_EQ(read_run_state(folder.path())->result, Result::finished);
}

}  // namespace
}  // namespace convoy
