// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

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

TEST(CompareCheckpoints, TakesTheNewestStepOfBothRuns) {
  const TempFolder a, b;
  const SmallPlan small = small_plan();
  const auto write = [&](const TempFolder& folder, const std::string& name, Index step) {
    std::filesystem::create_directories(folder / "checkpoints");
    write_set_file(folder / ("checkpoints/" + name), small.plan, small.layout, meta_at(step), {formula_set(small, 1)});
  };
  EXPECT_FALSE(newest_common_checkpoints(a.path(), b.path()));
  write(a, "epoch-0001.h5", 10);
  write(a, "epoch-0002.h5", 20);
  write(a, "last.h5", 25);
  write(b, "epoch-0001.h5", 10);
  EXPECT_EQ(newest_common_checkpoints(a.path(), b.path()),
            (std::pair{a / "checkpoints/epoch-0001.h5", b / "checkpoints/epoch-0001.h5"}));
  write(b, "last.h5", 20);
  EXPECT_EQ(newest_common_checkpoints(a.path(), b.path()),
            (std::pair{a / "checkpoints/epoch-0002.h5", b / "checkpoints/last.h5"}));
}

}  // namespace
}  // namespace convoy
