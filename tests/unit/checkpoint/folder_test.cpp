// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "checkpoint/file.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// One main file; `age`: seconds since it was written.
void write(const TempFolder& folder, const std::string& name, Index step, int age, Index attempt = 0) {
  const SmallPlan small = small_plan();
  FileMeta meta;
  meta.model = "small";
  meta.meta.position.step = step;
  meta.meta.attempt = attempt;
  const std::string path = main_path(folder.path(), name);
  write_set_file(path, small.plan, small.layout, meta, {formula_set(small, 1)});
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(age));
}

Names stems(const Names& paths) {
  Names names;
  for (const std::string& path : paths) names.push_back(fs::path(path).stem().string());
  return names;
}

TEST(CheckpointFolder, ListsWholeOnesByStepsDone) {
  const TempFolder folder;
  write(folder, "epoch-0001", 100, 0);
  write(folder, "step-00000250", 250, 50);
  write(folder, "epoch-0002", 200, 40);
  write(folder, "last", 260, 60);
  write(folder, "best", 900, 0);
  write(folder, "notes", 901, 0);
  std::ofstream(folder / "epoch-0003.h5") << "damaged";
  EXPECT_EQ(stems(list_checkpoints(folder.path())), (Names{"last", "step-00000250", "epoch-0002", "epoch-0001"}));
  EXPECT_TRUE(list_checkpoints(folder / "none").empty());
}

/// `last` tells that its job had come to its end, where others of that step tell that it had come so far.
TEST(CheckpointFolder, TakesTheLastOneOfSeveralOfAStep) {
  const TempFolder folder;
  for (const char* name : {"epoch-0003", "last", "step-00000300"}) write(folder, name, 300, 0, 1);
  EXPECT_EQ(stems(list_checkpoints(folder.path())).front(), "last");
  write(folder, "step-00000301", 301, 0, 1);
  EXPECT_EQ(stems(list_checkpoints(folder.path())).front(), "step-00000301");
}

/// Attempt 3 went back to step 100 of attempt 1 with larger batches, so that it counts fewer steps.
TEST(CheckpointFolder, AReturnToAnOlderCheckpointIsANewLine) {
  const TempFolder folder;
  write(folder, "epoch-0001", 100, 0, 1);
  write(folder, "epoch-0002", 200, 0, 1);
  write(folder, "best", 200, 0, 1);
  write(folder, "last", 300, 0, 2);
  std::ofstream(folder / "last.shard-0000.a0002") << "goes with its main file";
  std::ofstream(folder / "notes.h5") << "not ours";
  const AttemptRecord back{.number = 3, .from = "epoch-0001.h5", .from_attempt = 1, .from_step = 100};
  claim_number({folder.path()}, back);
  const Lineage line(folder.path());
  EXPECT_EQ(stems(list_checkpoints(folder.path())), (Names{"last", "epoch-0002", "epoch-0001"}));
  EXPECT_EQ(stems(list_checkpoints(folder.path(), {}, line)), Names{"epoch-0001"});

  const NewerCheckpoints newer = list_newer(folder.path(), {1, 50}, line);
  EXPECT_EQ(newer.files.size(), 5U);
  EXPECT_FALSE(newer.leaves_one);
  EXPECT_TRUE(list_newer(folder.path(), {1, 100}, line).leaves_one);
  write(folder, "step-00000040", 40, 0, 1);
  EXPECT_TRUE(list_newer(folder.path(), {1, 50}, line).leaves_one);
  fs::remove(folder / "step-00000040.h5");
  write(folder, "epoch-0001", 100, 0, 3);
  EXPECT_FALSE(list_newer(folder.path(), {2, 300}, line).leaves_one) << "those before it aren't of the line";
  write(folder, "epoch-0001", 100, 0, 1);

  const Names abandoned = list_abandoned(folder.path(), &line);
  EXPECT_EQ(abandoned, (Names{"best.h5", "epoch-0002.h5", "last.h5", "last.shard-0000.a0002"}));
  EXPECT_EQ(list_abandoned(folder.path(), nullptr).size(), 5U) << "a fresh run leaves all but the notes";
  EXPECT_TRUE(list_put_aside(folder.path()).empty());
  fs::create_directory(folder.path() + ".old-1");
  std::string aside;
  put_aside(folder.path(), abandoned, aside, {});
  EXPECT_EQ(aside, folder.path() + ".old-2");
  EXPECT_EQ(list_put_aside(folder.path()), Names{aside}) << "an empty folder holds no checkpoint";
  EXPECT_EQ(list_folder(aside).size(), 4U);
  fs::remove_all(folder.path() + ".old-1");
  fs::remove_all(aside);

  write(folder, "epoch-0002", 60, 0, 3);
  EXPECT_EQ(stems(list_checkpoints(folder.path(), {}, line)), (Names{"epoch-0002", "epoch-0001"}))
      << "fewer steps, and later";
}

TEST(CheckpointFolder, DropsTheOldestWritten) {
  const TempFolder folder;
  write(folder, "last", 1, 1000);
  write(folder, "best", 1, 1000);
  write(folder, "epoch-0009", 900, 0, 1);  // of an attempt before the one that was sent back to epoch 3
  write(folder, "epoch-0003", 300, 400, 2);
  write(folder, "step-00000350", 350, 300, 2);
  write(folder, "epoch-0004", 400, 900, 2);  // whatever the date says
  std::ofstream(folder / shard_file("epoch-0003", 0, 1)) << "goes with its main file";
  std::ofstream(folder / "epoch-0003.shard-0001.a0001.h5") << "under the name of an older version, too";
  std::ofstream(folder / shard_file("epoch-0004", 0, 1)) << "stays";
  std::ofstream(folder / "epoch-0004.shard-0001.a0001.h5") << "stays";
  std::ofstream(folder / "epoch-0005.shard-0000.a0001.h5") << "of a save that is under way";
  drop_old_checkpoints(folder.path(), 2, {});
  EXPECT_EQ(list_folder(folder.path()),
            (Names{"best.h5", "epoch-0004.h5", "epoch-0004.shard-0000.a0001", "epoch-0004.shard-0001.a0001.h5",
                   "epoch-0005.shard-0000.a0001.h5", "last.h5", "step-00000350.h5"}));
}

TEST(CheckpointFolder, RemovesWhatKilledSavesLeft) {
  const TempFolder folder;
  write(folder, "last", 1, 0);
  std::ofstream(folder / "last.shard-0000.a0001.h5") << "may belong to the main file";
  std::ofstream(folder / "last.shard-0001.a0001") << "so may this";
  std::ofstream(folder / "last.shard-0002.a0001.a0001.tmp") << "half-written";
  std::ofstream(folder / "epoch-0002.shard-0000.a0001") << "has no main file";
  std::ofstream(folder / "epoch-0001.shard-0000.a0001.h5") << "has no main file";
  std::ofstream(folder / "last.h5.a0001.tmp") << "half-written";
  std::ofstream(folder / "last.h5.a0003.tmp") << "of a newer attempt";
  std::ofstream(folder / "notes.h5.tmp") << "not ours";
  remove_leftovers(folder.path(), Fence({}, 2));
  EXPECT_EQ(list_folder(folder.path()), (Names{"last.h5", "last.h5.a0003.tmp", "last.shard-0000.a0001.h5",
                                               "last.shard-0001.a0001", "notes.h5.tmp"}));
}

TEST(CheckpointFolder, KnowsTheNamesOfItsFiles) {
  EXPECT_EQ(shard_file("last", 3, 2), "last.shard-0003.a0002");
  for (const char* ours : {"last.h5", "best.h5.damaged", "epoch-0003.h5.a0002.tmp", "last.shard-0001.a0002",
                           "last.shard-0001.a0002.a0002.tmp", "step-00000012.shard-0001.a0002.h5"})
    EXPECT_TRUE(is_checkpoint_file(ours)) << ours;
  for (const char* other : {"last", "notes.h5", "last.shard-0001", "epoch-.h5", "last.h5.old"})
    EXPECT_FALSE(is_checkpoint_file(other)) << other;
}

}  // namespace
}  // namespace convoy
