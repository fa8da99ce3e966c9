// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "backend/compression_layout.hpp"
#include "backend/set_layout.hpp"
#include "io/hdf5.hpp"
#include "io/seal.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {
namespace fs = std::filesystem;

FileMeta sample_meta() {
  FileMeta meta;
  meta.model = "small";
  meta.meta.position = {3, 17, 1200, 153600};
  meta.meta.replicas = 4;
  meta.meta.ranks = 2;
  meta.meta.local_steps = 10;
  meta.meta.plan_digest = 0xfeedfacecafebeefULL;
  meta.meta.configuration_hash = "0123abcd";
  meta.meta.texts = {{"choices", "conv1: direct\nbn1: \"fused\""}, {"configuration", "epochs = 10\n"}};
  meta.meta.numbers = {{"best_top1", 0.1 + 0.2}, {"loss", std::numeric_limits<double>::quiet_NaN()}};
  return meta;
}

void write_sample(const std::string& path) {
  const SmallPlan small = small_plan();
  write_set_file(path, small.plan, small.layout, sample_meta(), {formula_set(small, 1)});
}

/// The text of the error that reading throws; empty where it doesn't.
std::string reading_error(const std::string& path, const SmallPlan& small, Content content = Content::all,
                          int replica = -1) {
  try {
    read_set_file(path, small.plan, small.layout, content, Head::must_fit, replica);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data);
    return error.what();
  }
  return {};
}

TEST(CheckpointFile, RoundTripIsBitExact) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  HostSet set = formula_set(small, 1);
  set.block[0] = -0.0F;
  set.block[1] = std::numeric_limits<float>::denorm_min();
  set.block[2] = std::numeric_limits<float>::quiet_NaN();
  write_set_file(folder / "a.h5", small.plan, small.layout, sample_meta(), {set});

  const SetFile read = read_set_file(folder / "a.h5", small.plan, small.layout, Content::all);
  ASSERT_EQ(read.set.block.size(), set.block.size());
  EXPECT_EQ(std::memcmp(read.set.block.data(), set.block.data(), set.block.size() * sizeof(float)), 0);
  const CheckpointMeta& meta = read.meta.meta;
  EXPECT_EQ(meta.position.epoch, 3);
  EXPECT_EQ(meta.position.step_in_epoch, 17);
  EXPECT_EQ(meta.position.step, 1200);
  EXPECT_EQ(meta.position.images, 153600);
  EXPECT_EQ(meta.replicas, 4);
  EXPECT_EQ(meta.ranks, 2);
  EXPECT_EQ(meta.local_steps, 10);
  EXPECT_EQ(meta.plan_digest, 0xfeedfacecafebeefULL);
  EXPECT_EQ(meta.configuration_hash, "0123abcd");
  EXPECT_EQ(meta.texts, sample_meta().meta.texts);
  EXPECT_EQ(meta.numbers.at("best_top1"), 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(meta.numbers.at("loss")));
}

Index version_of(const std::string& path) {
  return Hdf5File(path, Hdf5File::Access::read).integer_attribute("version");
}

TEST(CheckpointFile, AMovingAverageStandsBesideTheWeights) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const HostSet set = formula_set(small, 1), ema = formula_set(small, 2);
  FileMeta meta = sample_meta();
  meta.meta.ema_decay = 0.999;
  write_set_file(folder / "a.h5", small.plan, small.layout, meta, {set, &ema});
  const auto without_state = [&](HostSet of) {
    for (const Range& range : {small.layout.optimiser, small.layout.state})
      std::fill_n(of.block.begin() + range.begin, range.count, 0.0F);
    return of.block;
  };

  const SetFile all = read_set_file(folder / "a.h5", small.plan, small.layout, Content::all);
  EXPECT_EQ(all.meta.meta.ema_decay, 0.999);
  EXPECT_EQ(all.set.block, set.block);
  EXPECT_EQ(all.ema.block, without_state(ema));
  const SetFile weights = read_set_file(folder / "a.h5", small.plan, small.layout, Content::weights);
  EXPECT_EQ(weights.set.block, without_state(ema));
  EXPECT_TRUE(weights.ema.block.empty());
  EXPECT_EQ(version_of(folder / "a.h5"), 2);

  // Its tensors are compared with the model's by name like all others.
  SmallPlan fewer = small;
  fewer.plan.table.rows.pop_back();
  EXPECT_NE(reading_error(folder / "a.h5", fewer, Content::weights)
                .find("'/ema/parameters/fc.bias' of the file is not in the model"),
            std::string::npos);
  SmallPlan renamed = small;
  renamed.plan.table.norms[0].name = "norm";
  EXPECT_NE(reading_error(folder / "a.h5", renamed, Content::weights)
                .find("'/ema/statistics/norm.running_mean' is missing in the file"),
            std::string::npos);

  // Without one nothing changes: programs that know of none read the file.
  write_sample(folder / "b.h5");
  EXPECT_EQ(version_of(folder / "b.h5"), 1);
  EXPECT_TRUE(read_set_file(folder / "b.h5", small.plan, small.layout, Content::all).ema.block.empty());
  EXPECT_THROW(write_set_file(folder / "c.h5", small.plan, small.layout, sample_meta(), {set, &ema}), Error);
  EXPECT_THROW(write_set_file(folder / "c.h5", small.plan, small.layout, meta, {set}), Error);
}

TEST(CheckpointFile, ResidualsAndBasesComeBackBitForBit) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const HostSet set = formula_set(small, 1);
  FileMeta meta = sample_meta();
  meta.meta.compression = {.kind = Compression::power_sgd, .rank = 1};
  const CompressionLayout layout = compression_layout(small.plan.table, meta.meta.compression);
  ASSERT_FALSE(layout.tensors.empty());
  const HostSet bases{0, first_bases(layout)};
  write_set_file(folder / "a.h5", small.plan, small.layout, meta, {.set = set, .compressed = &bases});
  EXPECT_EQ(version_of(folder / "a.h5"), 5) << "programs that know of none must not go on without them";
  const SetFile main = read_set_file(folder / "a.h5", small.plan, small.layout, Content::all);
  EXPECT_EQ(main.meta.meta.compression.kind, Compression::power_sgd);
  EXPECT_EQ(main.meta.meta.compression.rank, 1);
  EXPECT_EQ(main.set.block, set.block);
  EXPECT_EQ(main.compressed.block, bases.block);
  EXPECT_TRUE(read_set_file(folder / "a.h5", small.plan, small.layout, Content::weights).compressed.block.empty());

  // A shard has the residual and nothing else.
  HostSet residual{0, std::vector<float>(static_cast<std::size_t>(layout.residual_floats), 0.0F)};
  for (const CompressedTensor& tensor : layout.tensors)
    for (Index i = tensor.residual.begin; i < tensor.residual.end(); ++i)
      residual.block[static_cast<std::size_t>(i)] = static_cast<float>(i) + 0.25F;
  meta.replica = 2;
  write_set_file(folder / "b.shard-0002", small.plan, small.layout, meta, {.set = {}, .compressed = &residual});
  const SetFile shard =
      read_set_file(folder / "b.shard-0002", small.plan, small.layout, Content::all, Head::must_fit, 2);
  EXPECT_TRUE(shard.set.block.empty());
  EXPECT_EQ(shard.compressed.block, residual.block);
  EXPECT_THROW(write_set_file(folder / "c.h5", small.plan, small.layout, meta, {.set = set}), Error);
}

TEST(CheckpointFile, TellsEveryCompression) {
  for (const Compression kind : all_compressions) {
    FileMeta meta = sample_meta();
    meta.meta.compression = {.kind = kind, .rank = 7};
    const CompressionSpec read = parse_meta(to_text(meta), "a.h5").meta.compression;
    EXPECT_EQ(read.kind, kind) << name_of(kind);
    EXPECT_EQ(read.rank, 7) << name_of(kind);
  }
}

HostSet formula_outer(const SmallPlan& small, std::uint64_t seed) {
  HostSet outer;
  outer.block.assign(static_cast<std::size_t>(outer_layout(small.layout).count()), 0.0F);
  for (const StoredTensor& tensor : stored_outer(small.plan, small.layout))
    for (Index i = tensor.range.begin; i < tensor.range.end(); ++i)
      outer.block[static_cast<std::size_t>(i)] =
          static_cast<float>(mix_bits(hash_text(tensor.name, seed) + static_cast<std::uint64_t>(i)) >> 40);
  return outer;
}

TEST(CheckpointFile, AnOuterOptimisersStateComesBackBitForBit) {
  const TempFolder folder;
  const SmallPlan small = small_plan(), gaps = small_plan(Placing::backward_with_gaps);
  const HostSet set = formula_set(small, 1), ema = formula_set(small, 2), outer = formula_outer(small, 3);
  FileMeta meta = sample_meta();
  meta.meta.has_outer = true;
  write_set_file(folder / "a.h5", small.plan, small.layout, meta, {.set = set, .outer = &outer});
  EXPECT_EQ(version_of(folder / "a.h5"), 4) << "programs that know of none must not go on without it";
  const SetFile all = read_set_file(folder / "a.h5", small.plan, small.layout, Content::all);
  EXPECT_TRUE(all.meta.meta.has_outer);
  EXPECT_EQ(all.set.block, set.block);
  EXPECT_EQ(all.outer.block, outer.block);
  EXPECT_TRUE(all.ema.block.empty());
  const SetFile weights = read_set_file(folder / "a.h5", small.plan, small.layout, Content::weights);
  EXPECT_TRUE(weights.outer.block.empty());
  // The place of a tensor in the block is no part of the file.
  const SetFile moved = read_set_file(folder / "a.h5", gaps.plan, gaps.layout, Content::all);
  const auto here = stored_outer(small.plan, small.layout), there = stored_outer(gaps.plan, gaps.layout);
  for (const StoredTensor& tensor : here) {
    const auto same = [&](const StoredTensor& other) { return other.name == tensor.name; };
    const auto other = std::find_if(there.begin(), there.end(), same);
    ASSERT_NE(other, there.end()) << tensor.name;
    EXPECT_TRUE(std::equal(outer.block.begin() + tensor.range.begin, outer.block.begin() + tensor.range.end(),
                           moved.outer.block.begin() + other->range.begin))
        << tensor.name;
  }

  meta.meta.ema_decay = 0.999;
  write_set_file(folder / "b.h5", small.plan, small.layout, meta, {set, &ema, &outer});
  EXPECT_EQ(version_of(folder / "b.h5"), 4);
  const SetFile both = read_set_file(folder / "b.h5", small.plan, small.layout, Content::all);
  EXPECT_EQ(both.outer.block, outer.block);
  EXPECT_EQ(both.ema.block[0], ema.block[0]);
  EXPECT_THROW(write_set_file(folder / "c.h5", small.plan, small.layout, sample_meta(), {.set = set, .outer = &outer}),
               Error);

  SmallPlan fewer = small;
  fewer.plan.table.rows.pop_back();
  EXPECT_NE(reading_error(folder / "a.h5", fewer).find("of the file is not in the model"), std::string::npos);
}

TEST(CheckpointFile, LongTextsFit) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  FileMeta meta = sample_meta();
  meta.meta.texts["choices"] = std::string(300000, 'x') + "\xff";  // past 64 KiB, and no UTF-8
  write_set_file(folder / "a.h5", small.plan, small.layout, meta, {formula_set(small, 1)});
  EXPECT_EQ(read_file_meta(folder / "a.h5").meta.texts.at("choices").substr(0, 300000), std::string(300000, 'x'));
}

TEST(CheckpointFile, OrderAndPaddingOfTheTableDoNotMatter) {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  const SmallPlan other = small_plan(Placing::backward_with_gaps);
  const SetFile read = read_set_file(folder / "a.h5", other.plan, other.layout, Content::all);
  EXPECT_EQ(read.set.block, formula_set(other, 1).block);
}

TEST(CheckpointFile, AShardWithoutValuesHoldsTheRest) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  const HostSet whole = formula_set(small, 1);
  const Index first = small.layout.optimiser.begin;
  HostSet rest{first, {whole.block.begin() + first, whole.block.end()}};
  FileMeta meta = sample_meta();
  meta.replica = 2;
  meta.values_in_main = true;
  write_set_file(folder / "a.h5", small.plan, small.layout, meta, {rest});
  EXPECT_EQ(find_damage(folder / "a.h5"), "");
  const Hdf5File file(folder / "a.h5", Hdf5File::Access::read);
  EXPECT_FALSE(file.exists("/parameters"));
  EXPECT_EQ(file.integer_attribute("version"), 3);

  for (const Placing placing : {Placing::forward, Placing::backward_with_gaps}) {
    const SmallPlan other = small_plan(placing);
    const SetFile read = read_set_file(folder / "a.h5", other.plan, other.layout, Content::all, Head::must_fit, 2);
    EXPECT_TRUE(read.meta.values_in_main);
    HostSet expected = formula_set(other, 1);
    std::fill_n(expected.block.begin(), other.layout.values.count, 0.0F);
    EXPECT_EQ(read.set.block, expected.block);
  }
  SmallPlan renamed = small_plan();
  renamed.plan.table.rows[0].name = "stem.weight";
  EXPECT_NE(reading_error(folder / "a.h5", renamed, Content::all, 2)
                .find("'/optimiser/0/stem.weight' is missing in the file"),
            std::string::npos);
}

TEST(CheckpointFile, AShardIsNoCheckpoint) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  FileMeta meta = sample_meta();
  meta.replica = 2;
  const HostSet whole = formula_set(small, 1);
  write_set_file(folder / "whole.h5", small.plan, small.layout, meta, {whole});
  meta.values_in_main = true;
  const Index first = small.layout.optimiser.begin;
  write_set_file(folder / "rest.h5", small.plan, small.layout, meta,
                 {HostSet{first, {whole.block.begin() + first, whole.block.end()}}});
  for (const char* name : {"whole.h5", "rest.h5"}) {
    for (const Content content : {Content::all, Content::weights})
      EXPECT_NE(reading_error(folder / name, small, content).find("is no checkpoint but the shard of replica 2 (of 4)"),
                std::string::npos);
    EXPECT_THROW(read_main_meta(folder / name), Error);
    EXPECT_NE(reading_error(folder / name, small, Content::all, 1).find("is not the shard of replica 1 (it says 2)"),
              std::string::npos);
  }
  // A main file must not leave its parameters to another.
  meta.replica = -1;
  write_set_file(folder / "zeros.h5", small.plan, small.layout, meta,
                 {HostSet{first, {whole.block.begin() + first, whole.block.end()}}});
  EXPECT_NE(reading_error(folder / "zeros.h5", small).find("'/parameters/conv1.weight' is missing in the file"),
            std::string::npos);
}

TEST(CheckpointFile, AHeadCanBeLeftOut) {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  using Names = std::vector<std::string>;
  const Names layer{"/parameters/fc.weight", "/parameters/fc.bias"};
  const auto unread = [&](Head head, Index classes) {
    SmallPlan small = small_plan(Placing::forward, 1, classes);
    small.plan.graph.nodes.push_back({.name = "fc", .attributes = Linear{.in = 5, .out = classes}, .parameters = {{}}});
    return read_set_file(folder / "a.h5", small.plan, small.layout, Content::weights, head).unread;
  };
  EXPECT_EQ(unread(Head::where_it_fits, 10), Names{});
  EXPECT_EQ(unread(Head::where_it_fits, 100), layer);
  EXPECT_EQ(unread(Head::left_out, 10), layer);
  EXPECT_EQ(unread(Head::left_out, 100), layer);
  EXPECT_THROW(unread(Head::must_fit, 100), Error);
}

TEST(CheckpointFile, SameSaveGivesSameBytes) {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  write_sample(folder / "b.h5");
  EXPECT_EQ(seal_digest(folder / "a.h5"), seal_digest(folder / "b.h5"));
  EXPECT_EQ(check_seal(folder / "a.h5").file_bytes, fs::file_size(folder / "a.h5"));
}

TEST(CheckpointFile, WeightsAloneFitAnotherOptimiser) {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  const SmallPlan plain = small_plan(Placing::forward, 0);
  const SetFile read = read_set_file(folder / "a.h5", plain.plan, plain.layout, Content::weights);
  HostSet expected = formula_set(plain, 1);
  std::fill_n(expected.block.begin() + plain.layout.state.begin, plain.layout.state.count, 0.0F);
  EXPECT_EQ(read.set.block, expected.block);
  EXPECT_NE(reading_error(folder / "a.h5", plain).find("'/optimiser/0/bn1.bias' of the file is not in the model"),
            std::string::npos);
}

TEST(CheckpointFile, AnotherModelIsNamedWithTheFirstDifference) {
  const TempFolder folder;
  write_sample(folder / "a.h5");
  EXPECT_NE(reading_error(folder / "a.h5", small_plan(Placing::forward, 1, 100))
                .find("'/parameters/fc.weight' is 10x5 in the file and 100x5 in the model"),
            std::string::npos);

  SmallPlan renamed = small_plan();
  renamed.plan.table.rows[0].name = "stem.weight";
  EXPECT_NE(reading_error(folder / "a.h5", renamed).find("'/parameters/stem.weight' is missing in the file"),
            std::string::npos);

  SmallPlan fewer = small_plan();
  fewer.plan.table.rows.pop_back();
  EXPECT_NE(reading_error(folder / "a.h5", fewer).find("'/parameters/fc.bias' of the file is not in the model"),
            std::string::npos);

  EXPECT_NE(reading_error(folder / "a.h5", small_plan(Placing::forward, 2))
                .find("'/optimiser/second/conv1.weight' is missing"),
            std::string::npos);

  SmallPlan variant = small_plan();
  variant.plan.graph.model = "small v2";
  const std::string text = reading_error(folder / "a.h5", variant);
  EXPECT_NE(text.find("of small doesn't fit small v2"), std::string::npos) << text;
}

TEST(CheckpointFile, AnyFlippedBitIsSeen) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  write_sample(folder / "a.h5");
  std::ifstream in(folder / "a.h5", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 4000U);
  for (std::size_t at = 0, i = 0; at < bytes.size(); at += 13, ++i) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (i % 8)));
    std::ofstream(folder / "b.h5", std::ios::binary) << damaged;
    ASSERT_NE(reading_error(folder / "b.h5", small).find("b.h5"), std::string::npos) << "byte " << at;
    ASSERT_FALSE(find_damage(folder / "b.h5").empty()) << "byte " << at;
  }
}

TEST(CheckpointFile, TruncatedEmptyAndMissingAreSeen) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  write_sample(folder / "a.h5");
  const auto size = fs::file_size(folder / "a.h5");
  for (const auto length : {size - 1, size / 2, std::uintmax_t{600}, std::uintmax_t{100}, std::uintmax_t{0}}) {
    fs::resize_file(folder / "a.h5", length);
    EXPECT_NE(reading_error(folder / "a.h5", small).find("a.h5"), std::string::npos) << length;
  }
  EXPECT_NE(reading_error(folder / "none.h5", small).find("none.h5"), std::string::npos);
}

TEST(CheckpointFile, ForeignFilesAreRefused) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  {
    Hdf5File file(folder / "data.h5", Hdf5File::Access::create);
    file.attribute("version", Index{1});
    file.close();
  }
  seal_file(folder / "data.h5");
  EXPECT_NE(reading_error(folder / "data.h5", small).find("is not a checkpoint"), std::string::npos);
  {
    Hdf5File file(folder / "next.h5", Hdf5File::Access::create);
    file.attribute("format", std::string("convoy-checkpoint"));
    file.attribute("version", newest_checkpoint_version + 1);
    file.close();
  }
  seal_file(folder / "next.h5");
  EXPECT_NE(reading_error(folder / "next.h5", small).find("has format version 6 (this program reads versions 1 to 5)"),
            std::string::npos);
  // A whole file of another program version is no damage: it must not be set aside as such.
  EXPECT_THROW(find_damage(folder / "next.h5"), Error);

  std::ofstream(folder / "text.h5") << std::string(5000, 'x');
  EXPECT_NE(reading_error(folder / "text.h5", small).find("is a text file"), std::string::npos);
}

TEST(CheckpointFile, AFailedWriteLeavesTheOldFile) {
  const TempFolder folder;
  const SmallPlan small = small_plan();
  write_sample(folder / "a.h5");
  const std::uint32_t before = seal_digest(folder / "a.h5");
  fs::create_directory(folder / "a.h5.tmp");  // the temporary name is taken by a folder: creating the file fails
  EXPECT_THROW(write_sample(folder / "a.h5"), Error);
  EXPECT_EQ(seal_digest(folder / "a.h5"), before);
  EXPECT_TRUE(reading_error(folder / "a.h5", small).empty());
}

}  // namespace
}  // namespace convoy
