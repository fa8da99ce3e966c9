// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "backend/set_layout.hpp"
#include "checkpoint/resume.hpp"
#include "checkpoint/saver.hpp"
#include "core/replicas.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "support/expect_error.hpp"
#include "support/mpi_main.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;
constexpr int replicas = 5;
constexpr Index huge_classes = 20000;

std::uint64_t averaged_seed(Index step) { return static_cast<std::uint64_t>(step * 1000); }
std::uint64_t shard_seed(Index step, int replica) {
  return averaged_seed(step) + static_cast<std::uint64_t>(replica) + 1;
}

class CheckpointTest : public testing::Test {
 protected:
  /// The folder is rank 0's; all ranks are on one host.
  CheckpointTest() : communicator_(test_session(), {}) {
    if (communicator_.rank() == 0) owned_ = std::make_unique<TempFolder>();
    folder_ = owned_ ? owned_->path() : std::string();
    communicator_.broadcast(folder_, "test folder");
  }
  void TearDown() override { communicator_.barrier("end of test"); }

  ReplicaRun own() const { return deal_replicas(replicas, communicator_.size(), communicator_.rank()); }

  /// One save of an attempt of its own, to its end.
  SaveResult save(const std::string& name, Index step, bool with_shards, const std::string& folder,
                  const SmallPlan& small) {
    Saver saver(communicator_,
                {.folder = folder, .plan = small.plan, .layout = small.layout, .fence = Fence({}, ++attempt_)});
    saver.begin(spec(name, step, with_shards, small));
    saver.finish();
    return *saver.take_result();
  }
  SaveSpec spec(const std::string& name, Index step, bool with_shards, const SmallPlan& small) const {
    SaveSpec spec{.name = name, .with_shards = with_shards};
    spec.meta.position = {.step = step};
    spec.meta.replicas = replicas;
    spec.meta.ranks = communicator_.size();
    if (communicator_.rank() == 0) spec.averaged = std::make_shared<HostSet>(formula_set(small, averaged_seed(step)));
    const ReplicaRun run = own();
    for (int r = run.first; with_shards && r < run.first + run.count; ++r)
      spec.shards.push_back({r, 10 * step + r, formula_set(small, shard_seed(step, r))});
    return spec;
  }
  void save(const std::string& name, Index step, bool with_shards = false) {
    EXPECT_EQ(save(name, step, with_shards, folder_, small_).code, Exit::ok);
  }
  /// Run by rank 0 between barriers, so that no other rank reads meanwhile.
  template <class Body>
  void on_root(const Body& body) {
    communicator_.barrier("before");
    if (communicator_.rank() == 0) body();
    communicator_.barrier("after");
  }
  Checkpoint load(const std::string& name, int first, int count) {
    return load_checkpoint(communicator_, open_checkpoint(communicator_, main_path(folder_, name)), small_.plan,
                           small_.layout, {.first_replica = first, .replica_count = count});
  }
  std::string find_path(const WhyForeign& why_foreign = {}) {
    const auto found = find_checkpoint(communicator_, folder_, why_foreign);
    return found ? found->path : std::string();
  }
  /// The code of a save that fails, the same on all ranks, and what the ranks say of it.
  std::string saying_of_failure(const std::string& folder, const SmallPlan& small) {
    testing::internal::CaptureStderr();
    const Exit code = save("last", 9, true, folder, small).code;
    std::string text;
    for (const std::string& own : communicator_.all_gather(testing::internal::GetCapturedStderr(), "texts"))
      text += own;
    for (const std::string& other : communicator_.all_gather(std::to_string(static_cast<int>(code)), "codes"))
      EXPECT_EQ(other, std::to_string(static_cast<int>(Exit::data)));
    return text;
  }

  Communicator communicator_;
  std::unique_ptr<TempFolder> owned_;
  std::string folder_;
  const SmallPlan small_ = small_plan();
  Index attempt_ = 0;
};

TEST_F(CheckpointTest, ShardsGoToAnyRank) {
  save("last", 3, true);
  for (int count = 1; count <= replicas; ++count) {
    const Checkpoint loaded = load("last", replicas - count, count);
    EXPECT_EQ(loaded.set.block, formula_set(small_, averaged_seed(3)).block);
    EXPECT_EQ(loaded.meta.position.step, 3);
    EXPECT_EQ(loaded.meta.ranks, communicator_.size());
    EXPECT_EQ(loaded.shards.size(), static_cast<std::size_t>(count));
    for (const Shard& shard : loaded.shards) {
      EXPECT_EQ(shard.samples_since_average, 30 + shard.replica);
      EXPECT_EQ(shard.set.block, formula_set(small_, shard_seed(3, shard.replica)).block) << shard.replica;
    }
  }
  const Checkpoint weights = load_checkpoint(communicator_, open_checkpoint(communicator_, folder_), small_.plan,
                                             small_.layout, {.weights_only = true, .replica_count = replicas});
  EXPECT_TRUE(weights.shards.empty());
  EXPECT_EQ(weights.meta.position.step, 0);
  EXPECT_EQ(weights.set.block[0], formula_set(small_, averaged_seed(3)).block[0]);
  EXPECT_EQ(weights.set.block[static_cast<std::size_t>(small_.layout.optimiser.begin)], 0.0F);
}

/// The main file's alone, shards or not; every rank gets it.
TEST_F(CheckpointTest, AMovingAverageGoesToAllRanks) {
  const HostSet ema = formula_set(small_, 7);
  Saver saver(communicator_, {.folder = folder_, .plan = small_.plan, .layout = small_.layout});
  SaveSpec average = spec("last", 3, true, small_);
  average.meta.ema_decay = 0.9;
  if (communicator_.rank() == 0) average.ema = std::make_shared<HostSet>(ema);
  saver.begin(std::move(average));
  saver.finish();
  EXPECT_EQ(saver.take_result()->code, Exit::ok);

  const Checkpoint loaded = load("last", 0, replicas);
  EXPECT_EQ(loaded.meta.ema_decay, 0.9);
  EXPECT_EQ(loaded.set.block, formula_set(small_, averaged_seed(3)).block);
  EXPECT_EQ(loaded.shards.size(), static_cast<std::size_t>(replicas));
  ASSERT_EQ(loaded.ema.block.size(), ema.block.size());
  const Range values = small_.layout.values, statistics = small_.layout.statistics;
  const auto slice = [](const std::vector<float>& block, const Range& range) {
    return std::vector<float>(block.begin() + range.begin, block.begin() + range.end());
  };
  EXPECT_EQ(slice(loaded.ema.block, values), slice(ema.block, values));
  EXPECT_EQ(slice(loaded.ema.block, statistics), slice(ema.block, statistics));
  const Checkpoint weights = load_checkpoint(communicator_, open_checkpoint(communicator_, folder_), small_.plan,
                                             small_.layout, {.weights_only = true});
  EXPECT_EQ(slice(weights.set.block, values), slice(ema.block, values)) << "the model to evaluate";
  EXPECT_TRUE(weights.ema.block.empty());
}

/// Likewise.
TEST_F(CheckpointTest, AnOuterOptimiserGoesToAllRanks) {
  HostSet outer;
  for (Index i = 0; i < outer_layout(small_.layout).count(); ++i) outer.block.push_back(static_cast<float>(i) + 0.5F);
  Saver saver(communicator_, {.folder = folder_, .plan = small_.plan, .layout = small_.layout});
  SaveSpec save = spec("last", 3, true, small_);
  save.meta.has_outer = true;
  if (communicator_.rank() == 0) save.outer = std::make_shared<HostSet>(outer);
  saver.begin(std::move(save));
  saver.finish();
  EXPECT_EQ(saver.take_result()->code, Exit::ok);

  const Checkpoint loaded = load("last", 0, replicas);
  EXPECT_TRUE(loaded.meta.has_outer);
  EXPECT_EQ(loaded.shards.size(), static_cast<std::size_t>(replicas));
  ASSERT_EQ(loaded.outer.block.size(), outer.block.size());
  for (const StoredTensor& tensor : stored_outer(small_.plan, small_.layout))
    for (Index i = tensor.range.begin; i < tensor.range.end(); ++i)
      ASSERT_EQ(loaded.outer.block[static_cast<std::size_t>(i)], outer.block[static_cast<std::size_t>(i)]) << i;
  const Checkpoint weights = load_checkpoint(communicator_, open_checkpoint(communicator_, folder_), small_.plan,
                                             small_.layout, {.weights_only = true});
  EXPECT_TRUE(weights.outer.block.empty());
}

TEST_F(CheckpointTest, ShardsTakeTheirValuesFromTheAverage) {
  SaveSpec spec = this->spec("last", 3, true, small_);
  for (Shard& shard : spec.shards) {
    shard.set.first = small_.layout.optimiser.begin;
    shard.set.block.erase(shard.set.block.begin(), shard.set.block.begin() + shard.set.first);
  }
  Saver saver(communicator_, {.folder = folder_, .plan = small_.plan, .layout = small_.layout});
  saver.begin(std::move(spec));
  saver.finish();
  EXPECT_EQ(saver.take_result()->code, Exit::ok);
  EXPECT_EQ(find_path(), main_path(folder_, "last"));
  const Checkpoint loaded = load("last", 0, replicas);
  EXPECT_EQ(loaded.shards.size(), 5U);
  for (const Shard& shard : loaded.shards) {
    HostSet expected = formula_set(small_, shard_seed(3, shard.replica));
    std::copy_n(loaded.set.block.begin(), small_.layout.values.count, expected.block.begin());
    EXPECT_EQ(shard.set.block, expected.block) << shard.replica;
  }
}

TEST_F(CheckpointTest, SavingAgainReplacesTheShards) {
  for (Index step = 1; step <= 4; ++step) {
    save("last", step, step != 4);
    EXPECT_EQ(load("last", 0, replicas).shards.size(), step != 4 ? 5U : 0U);
    // Never more files than one set needs.
    EXPECT_EQ(list_folder(folder_).size(), step != 4 ? 6U : 1U);
    communicator_.barrier("read before the next save");
  }
}

TEST_F(CheckpointTest, FindsTheNewestWholeOne) {
  EXPECT_FALSE(find_checkpoint(communicator_, folder_).has_value());
  save("epoch-0001", 10);
  save("epoch-0002", 20, true);
  save("last", 25, true);
  EXPECT_EQ(find_path(), main_path(folder_, "last"));

  on_root([&] {  // one bit in the middle
    std::fstream file(main_path(folder_, "last"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3000);
    const int byte = file.peek();
    file.put(static_cast<char>(byte ^ 4));
  });
  EXPECT_EQ(find_path(), main_path(folder_, "epoch-0002"));
  EXPECT_TRUE(fs::exists(main_path(folder_, "last") + ".damaged"));
  EXPECT_FALSE(fs::exists(main_path(folder_, "last")));

  // A whole shard of another save makes the set torn.
  save("step-00000021", 21, true);
  on_root([&] {
    fs::rename(folder_ + "/" + shard_file("step-00000021", 4, attempt_),
               folder_ + "/" + shard_file("epoch-0002", 4, 2));
  });
  EXPECT_EQ(find_path(), main_path(folder_, "epoch-0001"));
  EXPECT_TRUE(fs::exists(main_path(folder_, "epoch-0002") + ".damaged"));
  EXPECT_TRUE(fs::exists(main_path(folder_, "step-00000021") + ".damaged"));
}

TEST_F(CheckpointTest, OneOfANewerVersionIsNotSetAside) {
  save("epoch-0001", 10);
  save("last", 25);
  on_root([&] {
    Hdf5File file(main_path(folder_, "last"), Hdf5File::Access::create);
    file.attribute("format", std::string("convoy-checkpoint"));
    file.attribute("version", newest_checkpoint_version + 1);
    file.close();
    seal_file(main_path(folder_, "last"), 0, 0, peek_tag(main_path(folder_, "epoch-0001")) + 1);
  });
  expect_error(Exit::data, {"has format version 6", "use the program that wrote it"},
               [&] { find_checkpoint(communicator_, folder_); });
  EXPECT_TRUE(fs::exists(main_path(folder_, "last")));
}

TEST_F(CheckpointTest, AForeignCheckpointIsLeftAlone) {
  save("epoch-0001", 10);
  save("epoch-0002", 20);
  const auto not_20 = [](const FileMeta& file) {
    return std::string(file.meta.position.step == 20 ? "it is of run 'x'" : "");
  };
  EXPECT_EQ(find_path(not_20), main_path(folder_, "epoch-0001"));
  EXPECT_TRUE(fs::exists(main_path(folder_, "epoch-0002")));
  expect_error(Exit::data, {folder_, "2 foreign", "--output-dir"},
               [&] { find_path([](const FileMeta&) { return std::string("of another run"); }); });
}

TEST_F(CheckpointTest, AShardIsNoCheckpoint) {
  save("last", 3, true);
  const std::string shard = folder_ + "/" + shard_file("last", 4, attempt_), copy = main_path(folder_, "epoch-0009");
  on_root([&] { fs::copy(shard, copy); });
  for (const std::string& path : {shard, copy})
    expect_error(Exit::data, {path, "is no checkpoint but the shard of replica 4 (of 5)"},
                 [&] { open_checkpoint(communicator_, path); });
  EXPECT_EQ(find_path(), main_path(folder_, "last"));
  EXPECT_TRUE(fs::exists(copy)) << "left alone";
}

TEST_F(CheckpointTest, ShardsWithNamesOfOlderVersionsAreLoaded) {
  on_root([&] {
    FileMeta file{.meta = spec("last", 3, true, small_).meta, .model = small_.plan.graph.model};
    for (int r = 0; r < replicas; ++r) {
      const std::string name = fmt::format("last.shard-{:04}.a0001.h5", r), path = folder_ + "/" + name;
      write_set_file(path, small_.plan, small_.layout, {.meta = file.meta, .model = file.model, .replica = r},
                     {formula_set(small_, shard_seed(3, r))});
      file.shards.push_back({r, 30 + r, name, seal_digest(path)});
    }
    write_set_file(main_path(folder_, "last"), small_.plan, small_.layout, file,
                   {formula_set(small_, averaged_seed(3))});
  });
  EXPECT_EQ(find_path(), main_path(folder_, "last"));
  const Checkpoint loaded = load("last", 1, 3);
  ASSERT_EQ(loaded.shards.size(), 3U);
  EXPECT_EQ(loaded.shards[2].set.block, formula_set(small_, shard_seed(3, 3)).block);
}

TEST_F(CheckpointTest, AForeignShardIsNotLoaded) {
  save("epoch-0001", 1, true);
  save("epoch-0002", 2, true);
  on_root([&] {
    fs::rename(folder_ + "/" + shard_file("epoch-0001", 2, 1), folder_ + "/" + shard_file("epoch-0002", 2, 2));
  });
  EXPECT_EQ(load("epoch-0002", 0, 2).shards.size(), 2U);
  expect_error(Exit::data, {"failed on rank 0", "another save"}, [&] { load("epoch-0002", 0, 3); });
  // Only the last rank wants it: all ranks hear of it.
  const bool wants = communicator_.rank() == communicator_.size() - 1;
  expect_error(Exit::data, {fmt::format("failed on rank {}", communicator_.size() - 1)},
               [&] { load("epoch-0002", 2, wants ? 1 : 0); });
}

TEST_F(CheckpointTest, AnUnwritableFolderFailsOnAllRanks) {
  on_root([&] { std::ofstream(folder_ + "/file") << "no folder"; });
  const std::string text = saying_of_failure(folder_ + "/file/checkpoints", small_);
  EXPECT_NE(text.find("cannot make the folder '" + folder_ + "/file/checkpoints'"), std::string::npos) << text;
  EXPECT_NE(text.find("--checkpoint-dir"), std::string::npos) << text;
}

// A limit on file sizes stands for a full disk on the last rank: its shard can't be written to the end.
TEST_F(CheckpointTest, AFullDiskOnOneRankLeavesTheOldCheckpoint) {
  save("last", 1, true);
  const bool limited = communicator_.rank() == communicator_.size() - 1;
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  if (limited) {
    const rlimit small_files{50000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small_files);
  }
  const std::string text = saying_of_failure(folder_, small_plan(Placing::forward, 1, huge_classes));
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(text.find("last.shard-"), std::string::npos) << text;
  EXPECT_NE(text.find("the one before stays"), std::string::npos) << text;

  EXPECT_EQ(find_path(), main_path(folder_, "last"));
  EXPECT_EQ(load("last", 0, replicas).shards.size(), 5U);
  for (const std::string& file : list_folder(folder_)) EXPECT_FALSE(file.ends_with(".tmp")) << file;
}

}  // namespace
}  // namespace convoy
