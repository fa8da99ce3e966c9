// SPDX-License-Identifier: Apache-2.0
// Two ranks train one network: gradients or weights staged through pinned memory and summed by MPI.
#include <gtest/gtest.h>

#include "cuda/step/ranks_job.hpp"

namespace convoy::cuda {
namespace {

class Staged : public testing::TestWithParam<JobSpec> {};
INSTANTIATE_TEST_SUITE_P(All, Staged,
                         testing::Values(JobSpec{}, JobSpec{.reproducible = true}, JobSpec{.sync_bn = true},
                                         JobSpec{.mode = SyncMode::weights},
                                         // Without norms nobody waits for statistics before the weights are used.
                                         JobSpec{.model = "lenet", .mode = SyncMode::weights, .image = 16}));

TEST_P(Staged, JobIsTheCpusInEveryOrder) { expect_the_cpus(GetParam()); }

TEST_P(Staged, EachForgottenWaitShows) {
  JobSpec job = GetParam();
  if (job.image < 16) job.image = 4;
  job.steps = 2;
  expect_each_wait_is_needed(job);
}

}  // namespace
}  // namespace convoy::cuda
