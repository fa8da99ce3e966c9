// SPDX-License-Identifier: Apache-2.0
// Reading shards from a store that counts what it is asked, and that can be told to break a request off.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/errors.hpp"
#include "preprocess/sources/file_reader.hpp"
#include "preprocess/sources/source.hpp"
#include "preprocess/spill/run_file.hpp"
#include "preprocess/spill/spiller.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temp_folder.hpp"

namespace convoy::preparation {
namespace {

class OneByte final : public ByteStream {
 public:
  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    if (left_ == 0 || bytes == 0) return 0;
    *to = 'x';
    return left_--;
  }
  void skip(Index) override { left_ = 0; }

 private:
  std::size_t left_ = 1;
};

/// Every folder holds the same files of one byte.
class TestStore final : public Store {
 public:
  explicit TestStore(int files) : files_(files) {}

  Listing list(const std::string& folder) override {
    ++lists;
    if (folder == breaks_off) fail(Exit::stopped, "reading was stopped");
    Listing listing;
    for (int i = 0; i < files_; ++i) listing.objects.push_back({fmt::format("{:04}.jpg", i), 1, ""});
    return listing;
  }
  ObjectInfo look_up(const std::string& name) override { return {name, 1, ""}; }
  std::unique_ptr<ByteStream> open(const std::string&, const ByteRange&) override {
    return std::make_unique<OneByte>();
  }
  std::string address(const std::string& name) const override { return "test:" + name; }
  std::size_t streams_ahead() const override { return 1; }

  int lists = 0;
  std::string breaks_off;  ///< the folder whose list never comes

 private:
  int files_;
};

Shard files_of(const std::string& folder, Index begin, Index end) {
  return {.object = folder, .prefix = folder, .class_name = folder, .begin = begin, .end = end};
}

TEST(FolderSource, ListsAFolderOnceForAllItsShards) {
  auto owned = std::make_unique<TestStore>(5);
  TestStore& store = *owned;
  OpenSplit split{{}, std::move(owned), std::nullopt};
  const PrepareSpec spec;
  const auto names = [&](const Shard& shard) {
    std::vector<std::string> all;
    const auto reader = find_source("folder")->open(spec, split, shard);
    for (RawSample sample; reader->next(sample);) all.push_back(sample.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(files_of("a", 0, 2)), (Names{"a/0000.jpg", "a/0001.jpg"}));
  EXPECT_EQ(names(files_of("a", 2, 4)), (Names{"a/0002.jpg", "a/0003.jpg"}));
  EXPECT_EQ(names(files_of("a", 4, 5)), (Names{"a/0004.jpg"}));
  EXPECT_EQ(store.lists, 1);
  EXPECT_EQ(names(files_of("b", 3, 5)), (Names{"b/0003.jpg", "b/0004.jpg"}));
  EXPECT_EQ(names(files_of("a", 1, 2)), (Names{"a/0001.jpg"}));
  EXPECT_EQ(store.lists, 3);
}

TEST(FolderSource, NoticesThatAFolderHasOtherFilesThanWhenItWasCut) {
  OpenSplit split{{}, std::make_unique<TestStore>(2), std::nullopt};
  Shard shard = files_of("a", 0, 2);
  shard.listing = digest_of({"0000.jpg", "0001.jpg"});
  RawSample sample;
  EXPECT_TRUE(find_source("folder")->open({}, split, shard)->next(sample));
  split.listed.reset();
  shard.listing = digest_of({"0000.jpg", "0002.jpg"});  // as many, but others
  expect_error(Exit::data, {"'test:a' has other images than a moment ago"},
               [&] { find_source("folder")->open({}, split, shard); });
}

TEST(Spiller, WritesWhatItHasReadWhereOpeningAShardIsBrokenOff) {
  const TempFolder folder;
  auto owned = std::make_unique<TestStore>(3);
  owned->breaks_off = "b";
  std::vector<OpenSplit> splits;
  splits.push_back({{}, std::move(owned), std::nullopt});
  PrepareSpec spec;
  spec.kind = find_source("folder");
  spec.recipe.sizes = {8};
  const std::vector<Shard> shards{files_of("a", 0, 3), files_of("b", 0, 3)};
  Spiller spiller({&spec, &shards, {{0, -1, 1}, {1, -1, 1}}, folder.path(), 1}, splits);
  spiller.join();
  EXPECT_EQ(spiller.progress().images, 3);
  std::vector<std::string> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) runs.push_back(entry.path());
  ASSERT_EQ(runs.size(), 1U);
  const RunReader run(runs.front());
  EXPECT_EQ(run.tables().images_read, 3);
  ASSERT_EQ(run.tables().slices.size(), 1U);
  EXPECT_EQ(run.tables().slices[0].shard, 0);
  EXPECT_TRUE(run.tables().slices[0].done);
}

}  // namespace
}  // namespace convoy::preparation
