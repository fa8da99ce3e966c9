// SPDX-License-Identifier: Apache-2.0
// What a job computes depends on its replicas, not on its ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "mpi/sync/small_job.hpp"
#include "support/allocations.hpp"

namespace convoy {
namespace {

constexpr Index steps = 11;

float largest_difference(const std::vector<float>& x, const std::vector<float>& y) {
  float largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

using Case = std::tuple<int, SyncMode, MomentumPolicy, bool>;  // replicas, mode, momentum, far device
class ReproducibleTest : public testing::TestWithParam<Case> {};

TEST_P(ReproducibleTest, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto [replicas, mode, momentum, far] = GetParam();
  JobSpec spec{
      .sync = {.mode = mode, .local_steps = 3, .momentum = momentum, .reproducible = true, .replicas = replicas},
      .shares = uneven_shares};
  Communicator& comm = communicator();
  SmallJob alone(spec, nullptr);
  spec.device = {.far = far, .polls = comm.rank()};
  SmallJob job(spec, &comm);
  for (const Index from : {0, 5}) {
    const Index to = from == 0 ? 5 : steps;  // evaluates in the middle of a period, then goes on
    alone.run(from, to);
    job.run(from, to);
    expect_same_bits(job, alone, comm);
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, ReproducibleTest,
                         testing::Combine(testing::Values(1, 2, 4, 5, 6, 7), testing::Values(SyncMode::gradients),
                                          testing::Values(MomentumPolicy::keep), testing::Bool()));
INSTANTIATE_TEST_SUITE_P(Weights, ReproducibleTest,
                         testing::Combine(testing::Values(1, 2, 4, 5, 6, 7), testing::Values(SyncMode::weights),
                                          testing::Values(MomentumPolicy::keep, MomentumPolicy::average),
                                          testing::Bool()));

class RoundingTest : public testing::TestWithParam<int> {};

/// Without `reproducible` sums of R ranks differ from those of one rank by rounding, and all ranks still agree.
TEST_P(RoundingTest, RanksDifferByRounding) {
  for (const SyncMode mode : {SyncMode::gradients, SyncMode::weights}) {
    const JobSpec spec{.sync = {.mode = mode, .local_steps = 2, .replicas = GetParam()}, .shares = uneven_shares};
    Communicator& comm = communicator();
    SmallJob alone(spec, nullptr), job(spec, &comm);
    alone.run(0, steps);
    job.run(0, steps);
    const auto found = job.contents(job.sync->averaged());
    EXPECT_LT(largest_difference(found, alone.contents(alone.sync->averaged())), 2e-6F);
    EXPECT_TRUE(equal_on_all_ranks(comm, found));
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
      EXPECT_LT(largest_difference(job.contents(job.sync->set(r)), alone.contents(alone.sync->set(r))), 2e-6F);
  }
}

/// Averaging the weights after every step is averaging the gradients: with uneven shares where the momentum is averaged
/// too, with a momentum of each replica's own where the shares stay what they are.
TEST_P(RoundingTest, OneLocalStepIsGradientAveraging) {
  const Shares constant_shares = [](Index, int replica) { return Index{2 + replica % 3}; };
  for (const auto& [momentum, shares] :
       {std::pair<MomentumPolicy, Shares>{MomentumPolicy::average, GetParam() > 1 ? uneven_shares : even_shares},
        {MomentumPolicy::keep, constant_shares}}) {
    JobSpec spec{.sync = {.mode = SyncMode::gradients, .momentum = momentum, .replicas = GetParam()}, .shares = shares};
    Communicator& comm = communicator();
    SmallJob gradients(spec, &comm);
    spec.sync.mode = SyncMode::weights;
    SmallJob weights(spec, &comm);
    gradients.run(0, steps);
    weights.run(0, steps);
    const ParameterSet &x = gradients.sync->averaged(), &y = weights.sync->averaged();
    for (const Range& range : {weights.layout.values, weights.layout.optimiser})
      EXPECT_LT(largest_difference(gradients.slice(x, range), weights.slice(y, range)), 2e-6F);
    // Batch norm excepted: a replica of its own statistics is not the batch of all.
    EXPECT_GT(std::abs(gradients.contents(x)[0]), 0.02F);  // from 0
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, RoundingTest, testing::Values(1, 3, 4, 7));

class SteadyStateTest : public testing::TestWithParam<std::tuple<SyncMode, bool, Wire>> {};

TEST_P(SteadyStateTest, AllocatesNothing) {
  const auto [mode, reproducible, wire] = GetParam();
  Communicator& comm = communicator();
  SmallJob job({.sync = {.mode = mode,
                         .local_steps = 2,
                         .momentum = MomentumPolicy::average,
                         .reproducible = reproducible,
                         .wire = wire,
                         .replicas = 5},
                .device = {.far = true, .polls = 1}},
               &comm);
  job.run(0, 4);
  const long before = count_allocations();
  job.run(4, 24);
  EXPECT_EQ(count_allocations() - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, SteadyStateTest,
                         testing::Combine(testing::Values(SyncMode::gradients, SyncMode::weights), testing::Bool(),
                                          testing::Values(Wire::fp32, Wire::bf16)));

class CompressedSteadyStateTest : public testing::TestWithParam<std::tuple<Compression, bool>> {};

/// From the first step on: who is summed is known before.
TEST_P(CompressedSteadyStateTest, AllocatesNothing) {
  const auto [kind, reproducible] = GetParam();
  Communicator& comm = communicator();
  SyncSpec sync{.mode = SyncMode::gradients, .reproducible = reproducible, .replicas = 5};
  sync.compression = {.kind = kind, .threshold = 0.1, .fraction = 0.1};
  SmallJob job({.sync = sync}, &comm), other({.sync = {.mode = SyncMode::gradients, .replicas = 5}}, &comm);
  other.run(0, 4);  // what MPI and the deadlines take for themselves
  const long before = count_allocations();
  job.run(0, 20);
  EXPECT_EQ(count_allocations() - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CompressedSteadyStateTest,
                         testing::Combine(testing::ValuesIn(all_compressions), testing::Bool()));

}  // namespace
}  // namespace convoy
