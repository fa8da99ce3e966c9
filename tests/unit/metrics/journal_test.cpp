// SPDX-License-Identifier: Apache-2.0
#include "metrics/journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

class JournalFile : public testing::Test {
 protected:
  std::string text(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const TempFolder folder_;
  const std::string path_ = folder_ / "metrics.jsonl";
};

TEST_F(JournalFile, EveryLineIsOnDiskWhenAppendReturns) {
  Journal journal(path_, Journal::Start::fresh, 0);
  journal.append(R"({"split":"train","step":1})");
  EXPECT_EQ(text(path_), "{\"split\":\"train\",\"step\":1}\n");
}

TEST_F(JournalFile, AResumedRunCutsWhatItWillDoAgain) {
  std::ofstream(path_) << "{\"split\":\"run\",\"event\":\"start\"}\n"
                          "{\"split\":\"train\",\"step\":10}\n"
                          "{\"split\":\"epoch\",\"step\":20}\n"
                          "{\"split\":\"val\",\"step\":20}\n"
                          "{\"split\":\"train\",\"step\":30}\n"
                          "{\"split\":\"run\",\"event\":\"start\",\"time\":\"later\"}\n"
                          "{\"split\":\"train\",\"st";  // killed while writing
  Journal journal(path_, Journal::Start::resume, 20);
  EXPECT_EQ(journal.kept().size(), 5U);
  journal.append(R"({"split":"train","step":30,"again":1})");
  EXPECT_EQ(text(path_),
            "{\"split\":\"run\",\"event\":\"start\"}\n"
            "{\"split\":\"train\",\"step\":10}\n"
            "{\"split\":\"epoch\",\"step\":20}\n"
            "{\"split\":\"val\",\"step\":20}\n"
            "{\"split\":\"run\",\"event\":\"start\",\"time\":\"later\"}\n"
            "{\"split\":\"train\",\"step\":30,\"again\":1}\n");
}

/// A stop in the middle of a validation saves before it: the next run makes it, tells of it, and may be killed then.
TEST_F(JournalFile, AValidationThatIsMadeAgainIsToldOnce) {
  const std::string before = "{\"split\":\"val\",\"step\":10}\n{\"split\":\"train\",\"step\":20}\n";
  const std::string validation = "{\"split\":\"val\",\"step\":20}\n";
  std::ofstream(path_) << before << validation;
  EXPECT_EQ(Journal(path_, Journal::Start::resume, 20, 20).kept().size(), 3U);
  Journal journal(path_, Journal::Start::resume, 20, 10);
  EXPECT_EQ(text(path_), before);
}

/// Epochs of 20 steps, then, with other batches, of 10: steps fall from 30 to 15.
TEST_F(JournalFile, EpochsOfAnEarlierCountOfStepsStay) {
  const std::string first =
      "{\"split\":\"epoch\",\"epoch\":1,\"step\":20}\n{\"split\":\"val\",\"epoch\":1,\"step\":20}\n"
      "{\"split\":\"train\",\"epoch\":2,\"step\":30}\n";
  const std::string second =
      "{\"split\":\"train\",\"epoch\":2,\"step\":16}\n{\"split\":\"epoch\",\"epoch\":2,\"step\":20}\n";
  std::ofstream(path_) << first << second << "{\"split\":\"train\",\"epoch\":3,\"step\":21}\n";
  Journal(path_, Journal::Start::resume, 20, Journal::no_limit, 2);
  EXPECT_EQ(text(path_), first + second) << "goes on from the newer count's epoch 2";
  Journal(path_, Journal::Start::resume, 20, Journal::no_limit, 1);
  EXPECT_EQ(text(path_), first.substr(0, first.rfind("{"))) << "goes back to the older count's epoch 1";
}

TEST_F(JournalFile, ResumingWithoutAFileStartsOne) {
  Journal journal(path_, Journal::Start::resume, 20);
  EXPECT_TRUE(journal.kept().empty());
  journal.append("{}");
  EXPECT_EQ(text(path_), "{}\n");
}

TEST_F(JournalFile, AFreshRunKeepsTheEarlierLogAside) {
  std::ofstream(path_) << "{\"step\":1}\n";
  Journal journal(path_, Journal::Start::fresh, 0);
  journal.append("{\"step\":2}");
  EXPECT_EQ(text(path_), "{\"step\":2}\n");
  EXPECT_EQ(text(path_ + ".old"), "{\"step\":1}\n");
}

TEST_F(JournalFile, AnUnwritablePathIsSaidOnceAndTheRunGoesOn) {
  std::ofstream(folder_ / "file") << "not a folder";
  for (const auto start : {Journal::Start::fresh, Journal::Start::resume}) {
    const std::string path = folder_ / "file/metrics.jsonl";
    testing::internal::CaptureStderr();
    Journal journal(path, start, 0);
    journal.append("{}");
    journal.append("{}");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(path), std::string::npos) << said;
    EXPECT_NE(said.find("Not a directory"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

}  // namespace
}  // namespace convoy
