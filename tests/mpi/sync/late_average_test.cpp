// SPDX-License-Identifier: Apache-2.0
// Averages that travel beside the steps of the next period.
#include <gtest/gtest.h>

#include <cmath>

#include "mpi/sync/small_job.hpp"
#include "support/expect_error.hpp"
#include "support/rounding.hpp"
#include "sync/traffic.hpp"

namespace convoy {
namespace {

JobSpec late(int replicas, Index steps) {
  return {.sync = {.mode = SyncMode::weights,
                   .local_steps = steps,
                   .overlap = true,
                   .reproducible = true,
                   .replicas = replicas},
          .shares = uneven_shares};
}

class LateAverageTest : public testing::TestWithParam<std::tuple<int, Index>> {};

TEST_P(LateAverageTest, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto [replicas, period] = GetParam();
  JobSpec spec = late(replicas, period);
  Communicator& comm = communicator();
  SmallJob alone(spec, nullptr);
  spec.delay_seconds = 0.002;  // the average is still under way when the next steps begin
  SmallJob job(spec, &comm);
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 2}, {2, 4}, {4, 9}, {9, 10}}) {
    alone.run(from, to);
    job.run(from, to);
    expect_same_bits(job, alone, comm);
  }
}

TEST_P(LateAverageTest, ALookAtTheModelChangesNothing) {
  const auto [replicas, period] = GetParam();
  const JobSpec spec = late(replicas, period);
  Communicator& comm = communicator();
  SmallJob seldom(spec, &comm), often(spec, &comm);
  seldom.run(0, 9);
  for (Index step = 0; step < 9; ++step) {
    often.run(step, step + 1);
    often.sync->averaged();
  }
  seldom.sync->averaged();  // no average may be under way when the job's memory is freed
  for (int r = seldom.replicas.first; r < seldom.replicas.first + seldom.replicas.count; ++r) {
    EXPECT_EQ(seldom.slice(seldom.sync->set(r), seldom.layout.values),
              often.slice(often.sync->set(r), often.layout.values));
  }
}

/// Every third step averages; the average of step 3 comes in step 6. Ranks digest what they receive only if they are
/// asked to, and forget it after a step more.
TEST(LateAverage, IsDigestedIfAskedFor) {
  Communicator& comm = communicator();
  SmallJob job(late(5, 3), &comm);
  job.run(0, 6);
  EXPECT_FALSE(job.sync->received_digest()) << "nobody asked";
  job.sync->digest_next_average();
  job.run(6, 8);
  EXPECT_FALSE(job.sync->received_digest()) << "none has come yet";
  job.run(8, 9);
  const auto digest = job.sync->received_digest();
  ASSERT_TRUE(digest);
  for (const std::string& other : comm.all_gather(std::to_string(*digest), "digests of the average"))
    EXPECT_EQ(other, std::to_string(*digest)) << "on all ranks";
  job.run(9, 10);
  EXPECT_EQ(job.sync->received_digest(), digest) << "one step later";
  job.run(10, 12);
  EXPECT_FALSE(job.sync->received_digest()) << "asked for once";
  job.sync->averaged();  // no average may be under way when the job's memory is freed
}

INSTANTIATE_TEST_SUITE_P(Jobs, LateAverageTest,
                         testing::Combine(testing::Values(1, 2, 3, 4, 7), testing::Values(1, 2, 3)));

/// After two periods x = x' + (mean of s - s), with x' and s what the replica has after two and after one without
/// averages.
TEST(LateAverage, ReachesTheReplicasAPeriodLater) {
  constexpr int replicas = 5;
  constexpr Index period = 3;
  const JobSpec spec = late(replicas, period);
  Communicator& comm = communicator();
  SmallJob job(spec, &comm);
  JobSpec apart = spec;
  apart.sync.overlap = false;
  apart.sync.local_steps = 1000;
  SmallJob alone(apart, nullptr);
  const Range values = job.layout.values;
  const auto all = [&] {
    std::vector<std::vector<float>> sets;
    sets.reserve(replicas);
    for (int r = 0; r < replicas; ++r) sets.push_back(alone.slice(alone.sync->set(r), values));
    return sets;
  };
  alone.run(0, period);
  const auto first = all();
  alone.run(period, 2 * period);
  const auto second = all();
  std::vector<double> share(replicas, 0.0);
  double total = 0;
  for (int r = 0; r < replicas; ++r)
    for (Index step = 0; step < period; ++step) {
      share[static_cast<std::size_t>(r)] += static_cast<double>(uneven_shares(step, r));
      total += static_cast<double>(uneven_shares(step, r));
    }
  job.run(0, period);
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
    EXPECT_EQ(job.slice(job.sync->set(r), values), first[static_cast<std::size_t>(r)]) << "nothing has come yet";
  job.run(period, 2 * period);
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r) {
    const auto own = static_cast<std::size_t>(r);
    const std::vector<float> found = job.slice(job.sync->set(r), values);
    for (std::size_t i = 0; i < found.size(); ++i) {
      double mean = 0,
             size = std::abs(static_cast<double>(first[own][i])) + std::abs(static_cast<double>(second[own][i]));
      for (std::size_t other = 0; other < replicas; ++other) {
        mean += share[other] / total * static_cast<double>(first[other][i]);
        size += share[other] / total * std::abs(static_cast<double>(first[other][i]));
      }
      const double wanted = static_cast<double>(second[own][i]) + mean - static_cast<double>(first[own][i]);
      // Share and product of each term, four additions of the mean, the difference, and the sum.
      EXPECT_NEAR(found[i], wanted, (replicas + 3) * fp32_unit * 2 * size) << "replica " << r << ", " << i;
    }
  }
  EXPECT_TRUE(job.sync->needs_shards());
  job.sync->averaged();  // no average may be under way when the job's memory is freed
}

/// Two averages start in six steps; the second ends when somebody looks at the model, which needs a third.
TEST(LateAverage, SendsAsManyBytesAsItsTrafficSays) {
  Communicator& comm = communicator();
  JobSpec spec = late(comm.size(), 3);
  spec.shares = even_shares;
  SmallJob job(spec, &comm);
  job.run(0, 6);
  job.sync->averaged_weights();
  std::int64_t sent = job.collectives->sent_bytes().value_or(-1);
  comm.sum(std::span<std::int64_t>(&sent, 1), "bytes");
  const Traffic traffic = traffic_of(job.spec.sync, job.plan, job.layout);
  EXPECT_EQ(sent, 3 * bytes_sent(traffic, comm.size()));
  EXPECT_EQ(traffic.steps, 3);
  if (comm.size() == 1) return;
  EXPECT_TRUE(traffic.beside_steps);
  Index waited = 0;
  for (const Traffic::Sum& sum : traffic.sums) waited += sum.waited ? sum.floats : 0;
  EXPECT_EQ(waited, 8 * comm.size() + 32) << "the reports of the replicas, and the variances";
}

/// Before its start local SGD averages after each of four steps, then after the eighth.
TEST(LocalStart, SendsAsManyBytesAsItsTrafficSays) {
  Communicator& comm = communicator();
  SmallJob job({.sync = {.mode = SyncMode::weights, .local_steps = 4, .local_start = 4, .replicas = comm.size()}},
               &comm);
  job.run(0, 8);
  std::int64_t sent = job.collectives->sent_bytes().value_or(-1);
  comm.sum(std::span<std::int64_t>(&sent, 1), "bytes");
  const Traffic traffic = traffic_of(job.spec.sync, job.plan, job.layout);
  EXPECT_EQ(sent, 5 * bytes_sent(traffic, comm.size()));
  EXPECT_EQ(traffic.start, comm.size() == 1 ? 0 : 4);
}

TEST(LateAverage, RefusesWhatItCantGoWith) {
  SyncSpec spec = late(4, 2).sync;
  EXPECT_NO_THROW(check(spec, BatchNormSamples::of_replica));
  spec.momentum = MomentumPolicy::average;
  expect_error(Exit::usage, {"--overlap-average is not possible with --local-momentum"},
               [&] { check(spec, BatchNormSamples::of_replica); });
  spec.momentum = MomentumPolicy::keep;
  spec.outer.rule = OuterRule::nesterov;
  expect_error(Exit::usage, {"--outer-optimizer"}, [&] { check(spec, BatchNormSamples::of_replica); });
  spec.outer = {};
  spec.wire = Wire::bf16;
  expect_error(Exit::usage, {"--wire"}, [&] { check(spec, BatchNormSamples::of_replica); });
}

}  // namespace
}  // namespace convoy
