// SPDX-License-Identifier: Apache-2.0
// What a 16-bit wire does to training: the same bits on any number of ranks, and an error that follows from the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "mpi/sync/small_job.hpp"
#include "sync/traffic.hpp"

namespace convoy {
namespace {

constexpr Index steps = 11;

/// The largest relative error of a rounding.
double unit_of(Wire wire) { return wire == Wire::bf16 ? 0x1p-8 : 0x1p-11; }

double largest_difference(const std::vector<float>& x, const std::vector<float>& y) {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, static_cast<double>(std::abs(x[i] - y[i])));
  return largest;
}

std::vector<float> outer_of(const SmallJob& job) {
  const ParameterSet outer = job.sync->outer();
  return {outer.block, outer.block + outer.count};
}

using Case = std::tuple<int, SyncSpec, Wire, bool>;  // replicas, policy, wire, far device
class WireLawTest : public testing::TestWithParam<Case> {};

TEST_P(WireLawTest, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto& [replicas, policy, wire, far] = GetParam();
  JobSpec spec{.sync = policy, .shares = uneven_shares};
  spec.sync.replicas = replicas;
  spec.sync.wire = wire;
  spec.sync.reproducible = true;
  Communicator& comm = communicator();
  SmallJob alone(spec, nullptr);
  spec.device = {.far = far, .polls = comm.rank()};
  SmallJob job(spec, &comm);
  for (const Index from : {0, 5}) {
    const Index to = from == 0 ? 5 : steps;  // evaluates in the middle of a period, then goes on
    alone.run(from, to);
    job.run(from, to);
    expect_same_bits(job, alone, comm);
    if (policy.mode == SyncMode::weights) {
      EXPECT_EQ(outer_of(job), outer_of(alone));
    }
  }
  // The format is seen in the result, on one rank too.
  spec.sync.wire = Wire::fp32;
  SmallJob whole(spec, &comm);
  whole.run(0, steps);
  EXPECT_NE(job.contents(job.sync->averaged()), whole.contents(whole.sync->averaged()));
}

const SyncSpec policies[] = {
    {.mode = SyncMode::gradients},
    {.mode = SyncMode::weights, .local_steps = 1},
    {.mode = SyncMode::weights, .local_steps = 3, .momentum = MomentumPolicy::average},
    {.mode = SyncMode::weights, .local_steps = 3, .local_start = 4, .outer = {OuterRule::nesterov, 0.7, 0.9}},
};
INSTANTIATE_TEST_SUITE_P(Policies, WireLawTest,
                         testing::Combine(testing::Values(2, 4, 7), testing::ValuesIn(policies),
                                          testing::Values(Wire::bf16, Wire::fp16), testing::Bool()));

struct WireTest : testing::Test {
  Communicator& comm = communicator();
  const int size = comm.size();

  SmallJob make(SyncSpec sync, Wire wire) {
    sync.replicas = size + 1;
    sync.wire = wire;
    return {JobSpec{.sync = sync, .shares = uneven_shares}, &comm};
  }
};

/// A rounding of each rank's sum and one of the result, of gradients of a few units that a rate of 0.1 scales.
TEST_F(WireTest, GradientsAreOffByTheRoundingOfTheFormat) {
  for (const Wire wire : {Wire::bf16, Wire::fp16}) {
    SmallJob job = make({.mode = SyncMode::gradients}, wire), whole = make({.mode = SyncMode::gradients}, Wire::fp32);
    job.run(0, 1);
    whole.run(0, 1);
    double sum = 0;
    for (int r = 0; r <= size; ++r) {
      SmallJob one({.sync = {.mode = SyncMode::gradients, .replicas = size + 1}, .shares = uneven_shares}, nullptr);
      double largest = 0;
      for (std::size_t stage = 0; stage < one.plan.buckets.size(); ++stage) {
        one.write_gradients(0, r, stage);
        const Range range = one.stage_range(stage);
        for (Index i = range.begin; i < std::min<Index>(range.end(), 40); ++i)
          largest = std::max(largest, static_cast<double>(std::abs(one.gradients[i])));
      }
      sum += largest;
    }
    const double difference = largest_difference(job.slice(job.sync->averaged(), job.layout.values),
                                                 whole.slice(whole.sync->averaged(), whole.layout.values));
    EXPECT_LE(difference, 0.1 * 2 * unit_of(wire) * sum + 1e-7);
    if (size > 1) {
      EXPECT_GT(difference, 0);
    }
    // Flags and statistics travel as they are.
    EXPECT_EQ(job.slice(job.sync->averaged(), job.layout.statistics),
              whole.slice(whole.sync->averaged(), whole.layout.statistics));
  }
}

/// The error is one of the change in a period, however large the weights are.
TEST_F(WireTest, WeightsLoseBitsOfTheirChangeAlone) {
  constexpr float large = 1000;
  for (const Wire wire : {Wire::bf16, Wire::fp16}) {
    const SyncSpec policy{.mode = SyncMode::weights, .local_steps = 2, .reproducible = true};
    SmallJob job = make(policy, wire);
    for (const ParameterSet& set : job.sync->sets()) {
      for (Index i = 0; i < 40; ++i) set.block[i] = large + 0.1F * static_cast<float>(i);
      job.backend.copy(job.sync->outer().block, set.block, job.layout.values.count, 1.0F);
    }
    // A change of thousandths, which bf16 weights near 1000 would not hold: their steps are 4.
    for (std::size_t i = 0; i < job.sync->sets().size(); ++i) {
      const int replica = job.replicas.first + static_cast<int>(i);
      for (Index k = 0; k < 40; ++k)
        job.sync->sets()[i].block[k] += 0x1p-10F * static_cast<float>(1 + replica) * static_cast<float>(1 + k % 3);
      job.sync->begin_replica(replica, 1, size);
    }
    job.sync->step_done(1);
    const auto found = job.slice(job.sync->averaged(), job.layout.values);
    for (Index k = 0; k < 40; ++k) {
      const double start = static_cast<double>(large + 0.1F * static_cast<float>(k));
      const double mean = 0x1p-10 * static_cast<double>(1 + k % 3) * (static_cast<double>(size) / 2 + 1);
      // fp32 weights near 1000 are 2^-14 apart.
      EXPECT_NEAR(static_cast<double>(found[static_cast<std::size_t>(k)]) - start, mean,
                  4 * unit_of(wire) * mean + 0x1p-13)
          << k;
    }
  }
}

TEST_F(WireTest, SendsAsManyBytesAsItsTrafficSays) {
  for (const bool reproducible : {false, true})
    for (SyncSpec policy : policies)
      for (const Wire wire : {Wire::fp32, Wire::bf16, Wire::fp16}) {
        policy.reproducible = reproducible;
        policy.local_start = 0;
        policy.wire = wire;
        policy.replicas = 2 * size;
        SmallJob job(JobSpec{.sync = policy}, &comm);
        job.run(0, 6);
        std::int64_t sent = *job.collectives->sent_bytes();
        comm.sum(std::span<std::int64_t>(&sent, 1), "bytes");
        const Traffic traffic = traffic_of(job.spec.sync, job.plan, job.layout);
        EXPECT_EQ(sent, 6 / traffic.steps * bytes_sent(traffic, size)) << describe(job.spec.sync);
        // The arrays, counted by hand: 48 parameters, 32 statistics, flags, reports.
        const Index narrow = 48 * bytes_of(wire), replicas = policy.replicas;
        Index bytes = 4 * (32 + replicas) + narrow;
        if (policy.mode == SyncMode::weights) bytes = 4 * (8 * replicas + 2 * 32) + narrow;
        if (policy.momentum == MomentumPolicy::average) bytes += 4 * 48;
        EXPECT_EQ(bytes_sent(traffic, size), 2 * (size - 1) * bytes) << describe(job.spec.sync);
      }
}

/// Stopped within a period: sets, anchor and samples are all that goes on needs.
TEST_F(WireTest, GoesOnFromItsState) {
  for (const SyncSpec& policy : policies) {
    if (policy.mode != SyncMode::weights) continue;
    SmallJob straight = make(policy, Wire::bf16), first = make(policy, Wire::bf16), second = make(policy, Wire::bf16);
    straight.run(0, steps);
    first.run(0, 5);
    static_cast<void>(first.sync->averaged());
    for (std::size_t i = 0; i < first.sync->sets().size(); ++i)
      second.backend.copy(second.sync->sets()[i].block, first.sync->sets()[i].block, first.layout.count(), 1);
    second.backend.copy(second.sync->outer().block, first.sync->outer().block, first.sync->outer().count, 1);
    second.sync->restore(first.sync->samples_since_average());
    second.run(5, steps);
    EXPECT_EQ(second.contents(second.sync->averaged()), straight.contents(straight.sync->averaged()));
  }
}

}  // namespace
}  // namespace convoy
