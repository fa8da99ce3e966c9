// SPDX-License-Identifier: Apache-2.0
// Every call that writes a checkpoint, an attempt or a small file fails once, in every way that a disk can fail.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "checkpoint/file.hpp"
#include "io/file.hpp"
#include "support/failing_calls.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

const std::map<std::string, int> errors{{"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {"EIO", EIO}};

/// What `body` says when the call fails for the (after + 1)th time that it touches `path`; empty: it succeeds.
template <class Body>
std::string failure(const std::string& call, const std::string& path, const std::string& error, int after,
                    const Body& body) {
  set_failing_calls(fmt::format("{}:{}:{}:1:{}", call, path, error, after));
  std::string text;
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::data) << e.what();
    text = e.what();
  }
  set_failing_calls("");
  return text;
}

/// Lets each call of each kind fail once; `check(text, error)` judges. Returns how many failed.
template <class Body, class Check>
int fail_each(const std::vector<std::string>& calls, const std::string& path, const Body& body, const Check& check) {
  int failed = 0;
  for (const std::string& call : calls) {
    for (const auto& [error, number] : errors) {
      for (int after = 0;; ++after) {
        const std::string text = failure(call, path, error, after, body);
        if (text.empty()) break;
        SCOPED_TRACE(fmt::format("{} {} after {}: {}", call, error, after, text));
        check(text, number);
        ++failed;
      }
    }
  }
  return failed;
}

TEST(WriteFaults, OfACheckpoint) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const Fence fence({folder.path()}, claim_attempt({folder.path()}, {}));
  const std::string path = folder / "last.h5";
  const auto save = [&](std::uint64_t seed) {
    write_set_file(path, small.plan, small.layout, {.model = "small"}, {formula_set(small, seed)}, fence);
  };
  save(1);
  const std::uint32_t before = seal_digest(path);
  // Once a save gets through, what it has written is the state to keep.
  const int failed = fail_each(
      {"open", "write", "fsync", "rename"}, "last.h5", [&] { save(1); },
      [&](const std::string& text, int error) {
        EXPECT_NE(text.find("last.h5"), std::string::npos) << "names the file";
        EXPECT_NE(text.find(std::strerror(error)), std::string::npos) << "names the reason";
        EXPECT_NE(text.find("; "), std::string::npos) << "names a remedy";
        EXPECT_EQ(seal_digest(path), before);
        EXPECT_EQ(read_set_file(path, small.plan, small.layout, Content::all).set.block, formula_set(small, 1).block);
        EXPECT_EQ(list_folder(folder.path()), (std::vector<std::string>{"attempts", "last.h5"}));
      });
  EXPECT_GT(failed, 4 * 10);  // HDF5's structure, its tensors, the seal ...
  EXPECT_EQ(find_damage(path), "");
  // The file is in place by then; that the name may not be on the disk yet has to be said all the same.
  EXPECT_NE(failure("fsync", folder.path(), "EIO", 1, [&] { save(1); }).find("cannot sync the folder"),
            std::string::npos);
  EXPECT_EQ(find_damage(path), "");
}

// Every write reports success, but a bit of it doesn't arrive.
TEST(WriteFaults, ABitThatFlipsOnItsWayToTheDisk) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const std::string path = folder / "last.h5";
  const auto save = [&](std::uint64_t seed) {
    write_set_file(path, small.plan, small.layout, {.model = "small"}, {formula_set(small, seed)});
  };
  save(1);
  int writes = 0;
  while (!failure("write", "last.h5", "EIO", writes, [&] { save(1); }).empty()) ++writes;
  // The last of them are ours, HDF5 has made the structure before: a tensor each, then the seal.
  const int ours = static_cast<int>(stored_tensors(small.plan, small.layout).size()) + 1;
  ASSERT_GE(writes, ours);
  for (int after = writes - ours; after < writes; ++after) {
    const std::string text = failure("write", "last.h5", "FLIP", after, [&] { save(2); });
    EXPECT_NE(text.find("reads back other bytes than were written"), std::string::npos) << after << ": " << text;
    EXPECT_EQ(read_set_file(path, small.plan, small.layout, Content::all).set.block, formula_set(small, 1).block);
    EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"last.h5"});
  }
}

TEST(WriteFaults, OfSmallFiles) {
  const TempFolder folder;
  const std::string path = folder / "state.json";
  replace_text_file(path, "old");
  const auto judge = [&](const std::string& text, int error) {
    EXPECT_NE(text.find("state.json"), std::string::npos);
    EXPECT_NE(text.find(std::strerror(error)), std::string::npos);
    EXPECT_NE(text.find("; "), std::string::npos);
    EXPECT_EQ(text_of_file(path), "old");
    EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"state.json"});
  };
  EXPECT_EQ(fail_each(
                {"open", "write", "rename"}, "state.json", [&] { replace_text_file(path, "old"); }, judge),
            12);
}

TEST(WriteFaults, OfAnAttempt) {
  const TempFolder folder;
  int failed = 0;
  for (const char* call : {"mkdir", "open", "write", "fsync"}) {
    for (const auto& [error, number] : errors) {
      const std::string text =
          failure(call, "attempts", error, 0, [&] { claim_attempt({folder.path()}, {.host = "h"}); });
      if (text.empty()) continue;  // the folder is there by now
      EXPECT_NE(text.find("attempts"), std::string::npos) << text;
      EXPECT_NE(text.find(std::strerror(number)), std::string::npos) << text;
      ++failed;
    }
  }
  EXPECT_EQ(failed, 16);
  const Index number = claim_attempt({folder.path()}, {.host = "h"});
  EXPECT_EQ(newest_attempt(folder.path()).number, number);
}

}  // namespace
}  // namespace convoy
