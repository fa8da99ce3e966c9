// SPDX-License-Identifier: Apache-2.0
// Looking into a source whose store counts what it is asked.
#include "preprocess/sources/scan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/mpi_main.hpp"

namespace convoy::preparation {
namespace {

class Text final : public ByteStream {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    const std::size_t count = std::min(bytes, text_.size() - at_);
    std::memcpy(to, text_.data() + at_, count);
    at_ += count;
    return count;
  }
  void skip(Index bytes) override { at_ += static_cast<std::size_t>(bytes); }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

constexpr Index record_bytes = Index{700} << 20;

/// Record files, each with an index of which two places lie far enough from each other; the last one has none.
class Records final : public Store {
 public:
  explicit Records(int files) : files_(files) {}

  Listing list(const std::string&) override {
    ++lists;
    Listing listing;
    for (int i = 0; i < files_; ++i) {
      if (i + 1 < files_) listing.objects.push_back({fmt::format("part-{:03}.idx", i), 1, ""});
      listing.objects.push_back({fmt::format("part-{:03}.rec", i), record_bytes, ""});
    }
    return listing;
  }
  ObjectInfo look_up(const std::string& name) override { return {name, record_bytes, ""}; }
  std::unique_ptr<ByteStream> open(const std::string&, const ByteRange&) override {
    return std::make_unique<Text>("0 0\n1 1000\n2 300000000\n3 300000100\n4 600000000\n");
  }
  std::string address(const std::string& name) const override { return "test:" + name; }
  std::size_t streams_ahead() const override { return 1; }

  int lists = 0;

 private:
  int files_;
};

TEST(Scan, ListsAFolderOnceForAllItsRecordFiles) {
  Communicator comm(test_session(), StallLimits{});
  auto owned = std::make_unique<Records>(9);
  const Records& store = *owned;
  std::vector<OpenSplit> splits;
  splits.push_back({{.folder = "here"}, std::move(owned), std::nullopt});
  PrepareSpec spec;
  spec.kind = find_source("recordio");
  const Scan scan = scan_splits(comm, spec, splits, {});
  // Once by rank 0 to find the files, once by each rank to find their indexes.
  EXPECT_EQ(store.lists, comm.rank() == 0 ? 2 : 1);
  EXPECT_EQ(scan.objects, 9);
  ASSERT_EQ(scan.shards.size(), 8U * 3 + 1);
  EXPECT_EQ(scan.shards[1].object, "part-000.rec");
  EXPECT_EQ(scan.shards[1].begin, 300000000);
  EXPECT_EQ(scan.shards[1].end, 600000000);
  EXPECT_EQ(scan.shards.back().object, "part-008.rec");
  EXPECT_EQ(scan.shards.back().begin, 0);
  EXPECT_EQ(scan.shards.back().end, -1);
}

}  // namespace
}  // namespace convoy::preparation
