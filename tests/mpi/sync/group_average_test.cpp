// SPDX-License-Identifier: Apache-2.0
// Averages within groups of replicas, between those of all.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>

#include "core/errors.hpp"
#include "mpi/sync/small_job.hpp"
#include "support/expect_error.hpp"
#include "support/rounding.hpp"
#include "sync/traffic.hpp"

namespace convoy {
namespace {

JobSpec two_levels(int replicas, int group, MomentumPolicy momentum = MomentumPolicy::average) {
  return {.sync = {.mode = SyncMode::weights,
                   .local_steps = 4,
                   .momentum = momentum,
                   .group = {.steps = 2, .replicas = group},
                   .reproducible = true,
                   .replicas = replicas},
          .shares = uneven_shares};
}

class GroupAverageTest : public testing::TestWithParam<std::tuple<int, int, MomentumPolicy>> {};

TEST_P(GroupAverageTest, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto [replicas, group, momentum] = GetParam();
  const JobSpec spec = two_levels(replicas, group, momentum);
  Communicator& comm = communicator();
  SmallJob alone(spec, nullptr), job(spec, &comm);
  // Ends within a period of a group, after an average of groups, and after one of all.
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 3}, {3, 6}, {6, 8}, {8, 11}}) {
    alone.run(from, to);
    job.run(from, to);
    expect_same_bits(job, alone, comm);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, GroupAverageTest,
                         testing::Combine(testing::Values(4), testing::Values(1, 2, 4),
                                          testing::Values(MomentumPolicy::keep, MomentumPolicy::average,
                                                          MomentumPolicy::reset)));
INSTANTIATE_TEST_SUITE_P(OneGroup, GroupAverageTest,
                         testing::Values(std::tuple{7, 7, MomentumPolicy::average},
                                         std::tuple{1, 1, MomentumPolicy::keep}));

TEST(GroupAverage, IsThatOfTheGroupsReplicasWeightedByTheirSamples) {
  const JobSpec spec = two_levels(4, 2);
  Communicator& comm = communicator();
  SmallJob job(spec, &comm);
  JobSpec apart = spec;
  apart.sync.group = {};
  apart.sync.local_steps = 1000;
  SmallJob alone(apart, nullptr);
  alone.run(0, 2);
  job.run(0, 2);
  const Range& values = job.layout.values;
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r) {
    const int first = r / 2 * 2;
    const std::vector<float> found = job.slice(job.sync->set(r), values);
    const std::vector<float> a = alone.slice(alone.sync->set(first), values),
                             b = alone.slice(alone.sync->set(first + 1), values);
    const auto samples = [&](int replica) {
      return static_cast<double>(uneven_shares(0, replica) + uneven_shares(1, replica));
    };
    const double share = shares_of({samples(first), samples(first + 1)})[0];
    // Of both terms the product is rounded, then their sum.
    constexpr double unit = 5 * fp32_unit;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double x = share * static_cast<double>(a[i]), y = (1 - share) * static_cast<double>(b[i]);
      EXPECT_NEAR(found[i], x + y, unit * (std::abs(x) + std::abs(y))) << "replica " << r << ", " << i;
    }
  }
  EXPECT_FALSE(job.sync->replicas_are_equal());
  EXPECT_TRUE(job.sync->needs_shards());
  job.run(2, 4);
  EXPECT_TRUE(job.sync->replicas_are_equal());
}

TEST(GroupAverage, SendsNothingBetweenGroupsThatRanksHaveAsAWhole) {
  Communicator& comm = communicator();
  if (comm.size() > 2) GTEST_SKIP() << "two groups";
  SmallJob job(two_levels(4, 2), &comm);
  job.run(0, 2);
  EXPECT_EQ(job.collectives->sent_bytes().value_or(-1), 0);
  EXPECT_EQ(job.group_collectives->sent_bytes().value_or(-1), 0);
  job.run(2, 4);
  if (comm.size() == 2) {
    EXPECT_GT(job.collectives->sent_bytes().value_or(-1), 0);
  }
}

/// Two averages of groups of one replica a rank, then one of all.
TEST(GroupAverage, SendsAsManyBytesAsItsTrafficSays) {
  Communicator& comm = communicator();
  for (const int group : {2, 3, 4})
    for (const MomentumPolicy momentum : {MomentumPolicy::keep, MomentumPolicy::average})
      for (const Wire wire : {Wire::fp32, Wire::bf16}) {
        if (comm.size() % group != 0) continue;
        JobSpec spec = two_levels(comm.size(), group, momentum);
        spec.shares = even_shares;
        spec.sync.local_steps = 6;
        spec.sync.wire = wire;
        SmallJob job(spec, &comm);
        job.run(0, 12);
        std::array<std::int64_t, 2> sent{job.collectives->sent_bytes().value_or(-1),
                                         job.group_collectives->sent_bytes().value_or(-1)};
        comm.sum(std::span<std::int64_t>(sent), "bytes");
        const Traffic traffic = traffic_of(job.spec.sync, job.plan, job.layout);
        EXPECT_EQ(traffic.group.times, 2);
        EXPECT_EQ(traffic.group.ranks, group);
        EXPECT_EQ(sent[0], 2 * bytes_sent(traffic, comm.size()));
        EXPECT_EQ(sent[1], 2 * comm.size() / group * group_bytes_sent(traffic));
        // By hand: reports, means, variances, weights, and the momentum if it is averaged; in fp32 whatever the wire.
        const Index floats = 8 * group + 2 * 32 + 48 + (momentum == MomentumPolicy::average ? 48 : 0);
        EXPECT_EQ(group_bytes_sent(traffic), 2 * 2 * (group - 1) * 4 * floats);
      }
}

TEST(GroupAverage, RefusesWhatCantBe) {
  SyncSpec spec = two_levels(4, 2).sync;
  EXPECT_NO_THROW(check(spec, BatchNormSamples::of_replica));
  spec.group.steps = 3;
  expect_error(Exit::usage, {"--node-steps 3 must be a part of --local-steps 4"},
               [&] { check(spec, BatchNormSamples::of_replica); });
  spec.group = {.steps = 2, .replicas = 3};
  expect_error(Exit::usage, {"can't be dealt to groups of 3"}, [&] { check(spec, BatchNormSamples::of_replica); });
  spec.group.replicas = 2;
  spec.mode = SyncMode::gradients;
  expect_error(Exit::usage, {"--node-steps 2 needs --sync weights"},
               [&] { check(spec, BatchNormSamples::of_replica); });
  spec.mode = SyncMode::weights;
  spec.replicas = 6;
  spec.ranks = 4;  // runs of 2, 2, 1, 1
  spec.group.replicas = 3;
  expect_error(Exit::usage, {"rank 1 has 2 to 3"}, [&] { check(spec, BatchNormSamples::of_replica); });
}

}  // namespace
}  // namespace convoy
