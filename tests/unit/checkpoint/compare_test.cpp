// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "checkpoint/fence.hpp"
#include "checkpoint/file.hpp"
#include "support/expect_error.hpp"
#include "support/small_plan.hpp"
#include "support/temp_folder.hpp"

namespace convoy {
namespace {

FileMeta meta_at(Index step) {
  FileMeta meta;
  meta.model = "small";
  meta.meta.position.step = step;
  return meta;
}

float& at(HostSet& set, Index i) { return set.block[static_cast<std::size_t>(i)]; }

TEST(CompareCheckpoints, NamesWhatDiffersInTheOrderOfTheNetwork) {
  const TempFolder folder;
  const SmallPlan small = small_plan(Placing::backward_with_gaps);  // as plans are: the last layer first
  HostSet set = formula_set(small, 1);
  const auto range = [&](const std::string& name) {
    for (const StoredTensor& tensor : stored_tensors(small.plan, small.layout))
      if (tensor.name == name) return tensor.range;
    return Range{};
  };
  const Range weight = range("/parameters/fc.weight"), bias = range("/parameters/conv1.weight"),
              slot = range("/optimiser/0/bn1.bias"), endless = range("/optimiser/0/fc.bias");
  for (Index i = 0; i < weight.count; ++i) at(set, weight.begin + i) = 3;
  at(set, endless.begin) = std::numeric_limits<float>::infinity();  // in both files
  write_set_file(folder / "a.h5", small.plan, small.layout, meta_at(1), {set});
  EXPECT_TRUE(compare_checkpoints(folder / "a.h5", folder / "a.h5").differing.empty());
  EXPECT_EQ(compare_checkpoints(folder / "a.h5", folder / "a.h5").tensors, 5 + 5 + 2 + 1);

  at(set, weight.begin + 7) = 3.5F;
  at(set, weight.begin + 9) = 2.75F;
  at(set, bias.begin) += 1;
  at(set, slot.begin) = std::nanf("");
  at(set, endless.begin + 1) += 0.5F;
  write_set_file(folder / "b.h5", small.plan, small.layout, meta_at(1), {set});
  const CheckpointComparison found = compare_checkpoints(folder / "a.h5", folder / "b.h5");
  ASSERT_EQ(found.differing.size(), 4U);
  EXPECT_EQ(found.differing[0].name, "/parameters/conv1.weight");
  EXPECT_EQ(found.differing[1].name, "/parameters/fc.weight");
  EXPECT_EQ(found.differing[1].largest, 0.5);
  // Two of fifty numbers that are 3 have moved by 1/2 and 1/4.
  EXPECT_NEAR(found.differing[1].relative, std::sqrt(0.25 + 0.0625) / (3 * std::sqrt(50.0)), 1e-12);
  EXPECT_EQ(found.differing[2].name, "/optimiser/0/bn1.bias");
  EXPECT_TRUE(std::isnan(found.differing[2].largest));
  EXPECT_EQ(found.differing[3].name, "/optimiser/0/fc.bias");
  EXPECT_NEAR(found.differing[3].largest, 0.5, 1e-6) << "equal infinities have no distance";
}

TEST(CompareCheckpoints, NamesWhatHasNoCounterpart) {
  const TempFolder folder;
  const SmallPlan small = small_plan(), other = small_plan(Placing::forward, 0, 12);
  write_set_file(folder / "a.h5", small.plan, small.layout, meta_at(1), {formula_set(small, 1)});
  write_set_file(folder / "b.h5", other.plan, other.layout, meta_at(1), {formula_set(other, 1)});
  const CheckpointComparison found = compare_checkpoints(folder / "a.h5", folder / "b.h5");
  const auto problem_of = [&](const std::string& name) {
    for (const TensorDifference& tensor : found.differing)
      if (tensor.name == name) return tensor.problem;
    return std::string("none");
  };
  EXPECT_EQ(problem_of("/parameters/fc.weight"), "f32 [10, 5] in A, f32 [12, 5] in B");
  EXPECT_EQ(problem_of("/optimiser/0/fc.bias"), "not in B");
  EXPECT_EQ(problem_of("/parameters/conv1.weight"), "none") << "it has the same bits";
  std::ofstream(folder / "c.h5") << "no checkpoint";
  EXPECT_THROW(compare_checkpoints(folder / "a.h5", folder / "c.h5"), Error);
}

/// Runs that save what they are told to.
struct Saves {
  TempFolder folder;
  SmallPlan small = small_plan();

  std::string write(const std::string& name, Index step, std::uint64_t formula, Index attempt = 0) const {
    std::filesystem::create_directories(folder / "checkpoints");
    FileMeta meta = meta_at(step);
    meta.meta.attempt = attempt;
    const std::string path = folder / ("checkpoints/" + name);
    write_set_file(path, small.plan, small.layout, meta, {formula_set(small, formula)});
    return path;
  }
};

TEST(CompareCheckpoints, PairsThoseOfOneStep) {
  const Saves a, b;
  const auto pairs = [&] { return common_checkpoints(a.folder.path(), b.folder.path()); };
  EXPECT_TRUE(pairs().empty());
  const std::string first = a.write("epoch-0001.h5", 10, 1), second = a.write("epoch-0002.h5", 20, 1);
  a.write("last.h5", 25, 1);
  const std::string other = b.write("epoch-0001.h5", 10, 1);
  EXPECT_EQ(pairs(), (std::vector<CheckpointPair>{{10, first, other}}));
  const std::string last = b.write("last.h5", 20, 1);
  EXPECT_EQ(pairs(), (std::vector<CheckpointPair>{{10, first, other}, {20, second, last}}));
}

/// Attempt 2 went on from step 10 of attempt 1, so step 20 of attempt 1 is another line.
TEST(CompareCheckpoints, LeavesOutWhatIsBesideTheLine) {
  const Saves a, b;
  const std::string first = a.write("epoch-0001.h5", 10, 1, 1), other = b.write("epoch-0001.h5", 10, 1);
  a.write("epoch-0002.h5", 20, 1, 1);
  b.write("epoch-0002.h5", 20, 1);
  ASSERT_EQ(claim_attempt({a.folder.path()}, {}), 1);
  ASSERT_TRUE(claim_number({a.folder.path()}, {.number = 2, .from = "x.h5", .from_attempt = 1, .from_step = 10}));
  EXPECT_EQ(common_checkpoints(a.folder.path(), b.folder.path()), (std::vector<CheckpointPair>{{10, first, other}}));
}

TEST(CompareCheckpoints, StopsAtTheFirstPairThatDiffers) {
  const Saves a, b;
  for (const Index step : {2, 4, 6, 8}) {
    a.write(fmt::format("step-{:08}.h5", step), step, 1);
    b.write(fmt::format("step-{:08}.h5", step), step, step < 6 ? 1 : 2);
  }
  const std::vector<CheckpointPair> pairs = common_checkpoints(a.folder.path(), b.folder.path());
  ASSERT_EQ(pairs.size(), 4U);
  const FirstDifference first = first_difference(pairs);
  EXPECT_EQ(first.pair, pairs[2]);
  EXPECT_FALSE(first.found.differing.empty());
  EXPECT_EQ(first.equal, 2U);
  EXPECT_EQ(first.equal_to_step, 4);
  EXPECT_TRUE(first.left_out.empty());

  const FirstDifference none = first_difference({pairs[0], pairs[1]});
  EXPECT_EQ(none.pair, pairs[1]) << "the newest";
  EXPECT_TRUE(none.found.differing.empty());
  EXPECT_EQ(none.equal, 2U);

  // What can't be read hides nothing behind it.
  std::ofstream(pairs[0].a) << "no checkpoint";
  const FirstDifference behind = first_difference(pairs);
  EXPECT_EQ(behind.pair, pairs[2]);
  EXPECT_EQ(behind.equal, 1U);
  ASSERT_EQ(behind.left_out.size(), 1U);
  EXPECT_EQ(behind.left_out[0].rfind("step 2: ", 0), 0U) << behind.left_out[0];
  // A run that goes on replaced the file after its first bytes were read.
  b.write("step-00000004.h5", 5, 1);
  EXPECT_EQ(first_difference(pairs).left_out.size(), 2U);
  expect_error(Exit::data, {"no checkpoint of a common step", "step 2"}, [&] { first_difference({pairs[0]}); });
}

}  // namespace
}  // namespace convoy
