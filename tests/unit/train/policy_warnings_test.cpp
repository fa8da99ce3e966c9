// SPDX-License-Identifier: Apache-2.0
// Periods and groups of averages that do nothing.
#include "train/policy_warnings.hpp"

#include <gtest/gtest.h>

namespace convoy {
namespace {

/// Four replicas on four ranks, 63 steps, on these hosts. The warnings, one after the other.
std::string warned(const SyncSpec& sync, const std::vector<std::string>& hosts = {"a", "a", "b", "b"}) {
  JobShape job;
  job.ranks = job.replicas = 4;
  job.sync = sync;
  job.sync.ranks = job.sync.replicas = 4;
  job.total_steps = 63;
  std::string text;
  for (const std::string& one : policy_warnings(job, hosts)) text += one;
  return text;
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(PolicyWarnings, OfAPeriodThatNeverEnds) {
  EXPECT_EQ(warned({.local_steps = 8}), "");
  EXPECT_EQ(warned({.local_steps = 63}), "") << "an average at the end alone";
  EXPECT_TRUE(says(warned({.local_steps = 64}), "no average reaches the replicas before its end"));
  EXPECT_EQ(warned({.local_steps = 31, .overlap = true}), "") << "at step 62";
  EXPECT_TRUE(says(warned({.local_steps = 32, .overlap = true}), "no average reaches"));
  EXPECT_EQ(warned({.local_steps = 8, .local_start = 55}), "") << "at step 56";
  EXPECT_TRUE(says(warned({.local_steps = 8, .local_start = 56}), "after step 56 (--local-sgd-start)"));
  EXPECT_TRUE(says(warned({.local_steps = 8, .local_start = 63}), "--local-sgd-start 63 is not reached"));
  EXPECT_EQ(warned({.mode = SyncMode::gradients, .local_steps = 1000}), "");
}

TEST(PolicyWarnings, OfGroups) {
  const auto groups = [](int replicas) {
    return SyncSpec{.local_steps = 4, .group = {.steps = 2, .replicas = replicas}};
  };
  EXPECT_EQ(warned(groups(2)), "");
  EXPECT_TRUE(says(warned(groups(1)), "--node-steps 2 has no effect"));
  EXPECT_TRUE(says(warned(groups(4)), "--local-steps 4 has no effect"));
  EXPECT_TRUE(
      says(warned(groups(2), {"a", "b", "c", "d"}), "replicas 0 to 1 are a group (--node-replicas 2) and lie on a, b"));
  EXPECT_TRUE(
      says(warned(groups(2), {"a", "a", "b", "c"}), "replicas 2 to 3 are a group (--node-replicas 2) and lie on b, c"));
}

}  // namespace
}  // namespace convoy
