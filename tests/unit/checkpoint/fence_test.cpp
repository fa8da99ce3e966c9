// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/fence.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "checkpoint/file.hpp"
#include "support/expect_error.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text = "x") { std::ofstream(path) << text; }

TEST(Fence, EveryAttemptGetsItsOwnNumber) {
  const TempFolder folder;
  constexpr std::size_t starters = 8, each = 20;
  std::vector<std::vector<Index>> numbers(starters);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < starters; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t n = 0; n < each; ++n) numbers[i].push_back(claim_attempt({folder.path()}, {}));
    });
  for (auto& thread : threads) thread.join();
  std::set<Index> all;
  for (const auto& own : numbers) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), starters * each);
  EXPECT_EQ(*all.rbegin(), static_cast<Index>(starters * each));
}

TEST(Fence, ANumberIsTakenInAllFolders) {
  const TempFolder run, checkpoints;
  EXPECT_EQ(claim_attempt({run.path()}, {}), 1);
  EXPECT_EQ(claim_attempt({run.path(), checkpoints.path()}, {}), 2);
  EXPECT_EQ(claim_attempt({checkpoints.path()}, {}), 3);
  EXPECT_EQ(Fence({run.path()}, 2).newer(), 0);
  EXPECT_EQ(Fence({run.path(), checkpoints.path()}, 2).newer(), 3);
}

TEST(Fence, ANumberThatIsTakenInOneFolderIsGivenBackInTheOther) {
  const TempFolder run, checkpoints;
  claim_attempt({checkpoints.path()}, {});
  EXPECT_FALSE(claim_number({run.path(), checkpoints.path()}, {.number = 1}));
  EXPECT_EQ(newest_number({run.path()}), 0);
  EXPECT_TRUE(claim_number({run.path(), checkpoints.path()}, {.number = 2}));
}

/// Saved below the run directory in attempt 1, outside in 2 and 3. A copy has the records of its original.
TEST(Fence, ACopiedRunLeadsToNoFoldersOfItsOriginal) {
  const TempFolder work, outside;
  const std::string run = work / "run", below = run + "/kept", copy = work / "copy";
  const auto attempt = [&](Index number, const std::string& folder) {
    return AttemptRecord{.number = number, .host = "n0", .pid = 7, .started = 100, .checkpoints = folder};
  };
  std::filesystem::create_directories(below);
  ASSERT_TRUE(claim_number({run}, attempt(1, below)));
  ASSERT_TRUE(claim_number({run, outside.path()}, attempt(2, outside.path())));
  ASSERT_TRUE(claim_number({run}, attempt(3, run + "/checkpoints")));
  const std::vector<std::string> own{run + "/checkpoints", outside.path(), below};
  EXPECT_EQ(checkpoint_folders(run), own);
  std::filesystem::copy(run, copy, std::filesystem::copy_options::recursive);
  EXPECT_EQ(checkpoint_folders(copy), (std::vector<std::string>{copy + "/checkpoints", outside.path()}))
      << "attempt 2 of both saved outside";
  // Another run's attempt of that number has saved there since.
  const TempFolder other;
  AttemptRecord stranger = attempt(2, outside.path());
  stranger.started = 101;
  rewrite_record({outside.path()}, stranger);
  EXPECT_EQ(checkpoint_folders(run), (std::vector<std::string>{run + "/checkpoints", below}));
}

/// A link to itself fails as a folder of another user does, which root could read.
TEST(Fence, ACopyOfARunThatCannotBeReadIsOneWithoutOriginal) {
  const TempFolder work;
  const std::string copy = work / "copy", closed = work / "closed";
  fs::create_symlink(closed, closed);
  ASSERT_TRUE(claim_number({copy}, {.number = 1, .checkpoints = closed + "/kept", .folder = closed + "/run"}));
  EXPECT_EQ(original_of(copy, newest_attempt(copy)), "");
  EXPECT_EQ(tell_original(copy), "");
  EXPECT_EQ(checkpoint_folders(copy), std::vector<std::string>{copy + "/checkpoints"});
}

TEST(Lineage, ARecordThatContinuesItselfEndsTheLine) {
  const TempFolder folder;
  EXPECT_TRUE(claim_number({folder.path()}, {.number = 2, .from = "x.h5", .from_attempt = 2, .from_step = 30}));
  EXPECT_TRUE(Lineage(folder.path()).holds(1, 5));
}

/// Attempt 1 begins afresh, 2 goes on from its step 30, 3 goes back to step 10 of attempt 1, 4 from there to step 20 of
/// attempt 3; 5 has begun nothing.
TEST(Lineage, FollowsWhereTheNewestAttemptCameFrom) {
  const TempFolder folder;
  const auto begins = [&](Index number, Index from_attempt, Index from_step) {
    AttemptRecord record{.number = number};
    if (from_attempt >= 0)
      record = {.number = number, .from = "x.h5", .from_attempt = from_attempt, .from_step = from_step};
    EXPECT_TRUE(claim_number({folder.path()}, record));
  };
  EXPECT_TRUE(Lineage(folder.path()).holds(7, 700)) << "nothing is known";
  begins(1, -1, -1);
  begins(2, 1, 30);
  EXPECT_TRUE(Lineage(folder.path()).holds(1, 30));
  EXPECT_FALSE(Lineage(folder.path()).holds(1, 31));
  begins(3, 1, 10);
  begins(4, 3, 20);
  begins(5, -1, -1);
  const Lineage line(folder.path());
  EXPECT_EQ(line.newest().number, 4);
  EXPECT_EQ(Lineage(folder.path(), 4).newest().number, 3);
  struct Case {
    Index attempt, step;
    bool holds;
  };
  for (const Case& one : std::vector<Case>{{1, 10, true},
                                           {1, 11, false},
                                           {2, 5, false},
                                           {2, 40, false},
                                           {3, 20, true},
                                           {3, 21, false},
                                           {4, 999, true},
                                           {5, 1, true},
                                           {0, 20, true},
                                           {0, 21, false}})
    EXPECT_EQ(line.holds(one.attempt, one.step), one.holds) << one.attempt << ' ' << one.step;
}

TEST(Fence, NamesThatNoAttemptReachesAreNotCounted) {
  const TempFolder folder;
  EXPECT_EQ(claim_attempt({folder.path()}, {}), 1);
  for (const char* name : {"9223372036854775807", "1000000000", "99999999999999999999"})
    write(folder.path() + "/attempts/" + name + ".json", "{}");
  const std::string stale = folder.path() + "/x.a99999999999999999999.tmp";
  write(stale);
  const Index number = claim_attempt({folder.path()}, {});
  EXPECT_EQ(number, 2);
  const Fence fence({folder.path()}, number);
  EXPECT_EQ(fence.newer(), 0);
  fence.remove_older_temporaries(folder.path());
  EXPECT_TRUE(fs::exists(stale));
}

TEST(Fence, RecordsComeBack) {
  const TempFolder folder;
  EXPECT_EQ(newest_attempt(folder.path()).number, 0);
  AttemptRecord record{.scheduler = "slurm", .job = "17", .restarts = 2, .host = "n1", .pid = 5, .started = 7.5};
  record.number = claim_attempt({folder.path()}, record);
  record.run = "r";
  rewrite_record({folder.path()}, record);
  claim_attempt({folder.path()}, {});
  write(folder / "attempts/0003.json", "");  // killed while it began
  write(folder / "attempts/0001.end.json", "{}");
  const AttemptRecord second = newest_attempt(folder.path());
  EXPECT_EQ(second.number, 2);
  EXPECT_TRUE(knows_run(folder.path(), "r"));
  EXPECT_FALSE(knows_run(folder.path(), "s"));
  EXPECT_TRUE(has_ended(folder.path(), 1));
  EXPECT_FALSE(has_ended(folder.path(), 2));
  EXPECT_EQ(claim_attempt({folder.path()}, {}), 4);
}

TEST(Fence, OnlyTheNewestRenames) {
  const TempFolder folder;
  const Fence old({folder.path()}, claim_attempt({folder.path()}, {}));
  write(folder / ("a" + old.suffix()), "first");
  old.rename(folder / ("a" + old.suffix()), folder / "a");
  EXPECT_EQ(old.suffix(), ".a0001.tmp");

  write(folder / ("a" + old.suffix()), "second");
  const Fence newer({folder.path()}, claim_attempt({folder.path()}, {}));
  EXPECT_EQ(old.newer(), 2);
  EXPECT_EQ(newer.newer(), 0);
  expect_error(Exit::superseded, {"attempt 2", "this is attempt 1"},
               [&] { old.rename(folder / ("a" + old.suffix()), folder / "a"); });
  std::string text;
  std::ifstream(folder / "a") >> text;
  EXPECT_EQ(text, "first");
}

// Frozen between the check and the rename: there is nothing left to rename.
TEST(Fence, TheNewerRemovesWhatTheOlderWouldRename) {
  const TempFolder folder;
  const Fence old({folder.path()}, claim_attempt({folder.path()}, {}));
  write(folder / ("last.h5" + old.suffix()));
  old.check();
  const Fence newer({folder.path()}, claim_attempt({folder.path()}, {}));
  write(folder / ("mine.h5" + newer.suffix()));
  write(folder / "notes.tmp");
  newer.remove_older_temporaries(folder.path());
  EXPECT_NE(std::rename((folder / ("last.h5" + old.suffix())).c_str(), (folder / "last.h5").c_str()), 0);
  EXPECT_TRUE(fs::exists(folder / ("mine.h5" + newer.suffix())));
  EXPECT_TRUE(fs::exists(folder / "notes.tmp"));  // not ours
}

TEST(Fence, AnOlderAttemptSavesNothing) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const Fence old({folder.path()}, claim_attempt({folder.path()}, {}));
  const auto save = [&](const Fence& fence, std::uint64_t seed) {
    write_set_file(folder / "last.h5", small.plan, small.layout, {.model = "small"}, {formula_set(small, seed)}, fence);
  };
  save(old, 1);
  const Fence newer({folder.path()}, claim_attempt({folder.path()}, {}));
  save(newer, 2);
  expect_error(Exit::superseded, {"attempt 2"}, [&] { save(old, 3); });
  const SetFile read = read_set_file(folder / "last.h5", small.plan, small.layout, Content::all);
  EXPECT_EQ(read.set.block, formula_set(small, 2).block);
  EXPECT_FALSE(fs::exists(folder / ("last.h5" + old.suffix())));
}

TEST(Fence, WithoutANumberGuardsNothing) {
  const Fence none;
  none.check();
  EXPECT_EQ(none.newer(), 0);
  EXPECT_EQ(none.suffix(), ".tmp");
}

}  // namespace
}  // namespace convoy
