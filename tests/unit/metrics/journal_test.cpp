// SPDX-License-Identifier: Apache-2.0
#include "metrics/journal.hpp"

#include <gtest/gtest.h>

#include <filesystem>

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

TEST_F(JournalFile, AnUnwritablePathIsAUsageErrorThatNamesIt) {
  for (const auto start : {Journal::Start::fresh, Journal::Start::resume}) {
    const std::string path = folder_ / "missing/metrics.jsonl";
    try {
      Journal journal(path, start, 0);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace convoy
