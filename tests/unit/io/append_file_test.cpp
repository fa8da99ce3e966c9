// SPDX-License-Identifier: Apache-2.0
#include "io/append_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "support/expect_error.hpp"
#include "support/failing_calls.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

class AppendFileTest : public testing::Test {
 protected:
  void TearDown() override { set_failing_calls(""); }
  std::string text() const { return read_bytes(path_); }

  const TempFolder folder_;
  const std::string path_ = folder_ / "records";
};

TEST_F(AppendFileTest, AppendsOrStartsAfresh) {
  AppendFile(path_, AppendFile::Start::fresh).append("one\n");
  AppendFile(path_, AppendFile::Start::append).append("two\n");
  EXPECT_EQ(text(), "one\ntwo\n");
  AppendFile(path_, AppendFile::Start::fresh).append("three\n");
  EXPECT_EQ(text(), "three\n");
}

/// A disk with room for the first half of a record.
TEST_F(AppendFileTest, ARecordThatDoesNotFitLeavesNoTrace) {
  AppendFile file(path_, AppendFile::Start::fresh);
  file.append("first\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{10, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  expect_error(Exit::data, {path_, "File too large", "make room"}, [&] { file.append("second record\n"); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(text(), "first\n");
  file.append("third\n");
  EXPECT_EQ(text(), "first\nthird\n");
}

TEST_F(AppendFileTest, OptionalRecordsSayOnceThatTheyAreLost) {
  OptionalRecords records(path_, AppendFile::Start::fresh);
  records.append("1\n");
  set_failing_calls("write:records:EIO:2");
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  for (const char* record : {"2\n", "3\n", "4\n", "5\n"}) records.append(record);
  const std::string said = testing::internal::GetCapturedStderr(), told = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("Input/output error"), std::string::npos) << said;
  EXPECT_NE(told.find("2 records are missing"), std::string::npos) << told;
  EXPECT_EQ(text(), "1\n4\n5\n");
}

TEST_F(AppendFileTest, AFileThatIsRemovedIsBegunAnew) {
  OptionalRecords records(path_, AppendFile::Start::fresh);
  records.append("1\n");
  std::filesystem::remove(path_);
  testing::internal::CaptureStderr();
  records.append("2\n");
  records.append("3\n");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("was removed"), std::string::npos) << said;
  EXPECT_EQ(text(), "2\n3\n");
}

TEST_F(AppendFileTest, AFileThatIsReplacedIsAnothersToWrite) {
  OptionalRecords records(path_, AppendFile::Start::fresh);
  records.append("1\n");
  std::filesystem::remove(path_);
  std::ofstream(path_) << "of a newer attempt\n";
  testing::internal::CaptureStderr();
  records.append("2\n");
  records.append("3\n");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("is a newer attempt's by now"), std::string::npos) << said;
  EXPECT_EQ(said.find("make room"), std::string::npos) << said;
  EXPECT_EQ(text(), "of a newer attempt\n");
}

TEST_F(AppendFileTest, AFolderThatIsRemovedIsSaidOnce) {
  std::filesystem::create_directory(folder_ / "run");
  OptionalRecords records(folder_ / "run/records", AppendFile::Start::fresh);
  std::filesystem::remove_all(folder_ / "run");
  testing::internal::CaptureStderr();
  records.append("1\n");
  records.append("2\n");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("No such file or directory"), std::string::npos) << said;
}

}  // namespace
}  // namespace convoy
