// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "mpi/sync/small_job.hpp"
#include "support/manual_clock.hpp"
#include "support/mpi_main.hpp"
#include "support/rounding.hpp"

namespace convoy {
namespace {

struct GradientSyncTest : testing::Test {
  Communicator& comm = communicator();
  const int size = comm.size();
};

TEST_F(GradientSyncTest, ReducesTheSumOfAllReplicas) {
  for (const int replicas : {size, 2 * size + 1, 1}) {
    SmallJob job({.sync = {.mode = SyncMode::gradients, .replicas = replicas}, .shares = uneven_shares}, &comm);
    // What each replica writes, as a job of its own computes it.
    SmallJob alone({.sync = {.mode = SyncMode::gradients, .replicas = replicas}, .shares = uneven_shares}, nullptr);
    std::vector<double> expected(static_cast<std::size_t>(job.plan.table.exchange.begin)), magnitude(expected);
    for (int replica = 0; replica < replicas; ++replica)
      for (std::size_t stage = 0; stage < job.plan.buckets.size(); ++stage) {
        alone.write_gradients(1, replica, stage);
        const Range range = alone.stage_range(stage);
        for (Index i = range.begin; i < range.end(); ++i) {
          expected[static_cast<std::size_t>(i)] += alone.gradients[i];
          magnitude[static_cast<std::size_t>(i)] += std::abs(alone.gradients[i]);
        }
      }
    job.run(1, 2);
    // Each addition rounds to u of a partial sum, which is at most the sum of the magnitudes.
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(job.gradients[i], expected[i], replicas * fp32_unit * magnitude[i]) << i;
  }
}

TEST_F(GradientSyncTest, MasksTheUpdateOfAllWhereOneReplicaIsNotFinite) {
  SmallJob job({.sync = {.mode = SyncMode::gradients, .replicas = size + 1}}, &comm);
  job.run(0, 3);
  const auto before = job.contents(job.sync->averaged());
  job.flagged_replica = size;
  job.flagged_step = 3;
  job.run(3, 4);
  auto after = job.contents(job.sync->averaged());
  DeviceState& state = *job.layout.device_state(after.data());
  EXPECT_EQ(state.applied, 3);
  EXPECT_EQ(state.skipped, 1);
  state.skipped = 0;
  EXPECT_EQ(after, before);
  EXPECT_EQ(job.gradients[job.plan.table.flags.begin + size], 1);  // names the replica, on every rank
  job.run(4, 5);
  EXPECT_NE(job.contents(job.sync->averaged()), before);
}

TEST_F(GradientSyncTest, HoldsOneSetThatIsAlwaysCurrent) {
  SmallJob job({.sync = {.mode = SyncMode::gradients, .replicas = 2 * size}}, &comm);
  EXPECT_EQ(job.sync->set(-1).block, job.sync->set(job.replicas.first).block);
  EXPECT_EQ(job.sync->averaged().block, job.sync->set(-1).block);
  EXPECT_FALSE(job.sync->needs_shards());
  EXPECT_TRUE(job.sync->samples_since_average().empty());
  EXPECT_EQ(job.sync->scale(5, 20), 0.05F);
  EXPECT_TRUE(job.sync->capturable(job.replicas.first));
  EXPECT_EQ(job.sync->capturable(job.replicas.first + 1), size == 1);
}

/// NCCL wants each sum captured by all ranks or by none: also if this rank's share of a short step is a whole batch.
TEST_F(GradientSyncTest, CapturesOnlyStepsWithEqualShares) {
  SmallJob job({.sync = {.mode = SyncMode::gradients, .replicas = 3}}, nullptr);
  const auto alone = make_alone(job.backend);  // its sums may be captured, as NCCL's
  SyncSpec spec = job.spec.sync;
  spec.ranks = 3;
  const auto sync = make_sync(spec, {job.backend, *alone, job.plan, job.layout, job.gradients});
  sync->begin_replica(0, 4, 12);
  EXPECT_TRUE(sync->capturable(0));
  sync->begin_replica(0, 4, 11);
  EXPECT_FALSE(sync->capturable(0));
  sync->begin_replica(0, 3, 9);
  EXPECT_TRUE(sync->capturable(0));
}

TEST_F(GradientSyncTest, ReducesWhileTheHostWorks) {
  ManualClock clock{0.001};  // every look takes a millisecond
  Communicator ranks(test_session(), {.warn_seconds = 0, .abort_seconds = 0}, 1 << 30, clock);
  SmallJob job({.sync = {.mode = SyncMode::gradients, .replicas = size}, .delay_seconds = 100}, &ranks);
  const int replica = job.replicas.first;
  for (std::size_t stage = 0; stage < job.plan.buckets.size(); ++stage) {
    job.write_gradients(0, replica, stage);
    job.sync->ready(stage, {job.stage_range(stage), SumTiming::overlapped}, replica);
  }
  clock.advance(99);
  static_cast<void>(job.collectives->take_wait_seconds());
  job.sync->replica_done(replica, 4, job.backend);
  const double waited = job.collectives->take_wait_seconds();
  EXPECT_LT(waited, 50);
  if (size > 1) {
    EXPECT_GT(waited, 0.0);
  }
}

/// Two exchanges in a row: the second uses what the first gave.
TEST_F(GradientSyncTest, ExchangesStatisticsOfSynchronisedBatchNormAtOnce) {
  const Plan plan = small_plan(size, true);
  SmallBackend backend(plan, {.far = true, .polls = 2});
  const auto collectives = make_mpi_collectives(comm, backend, {.replicas = size});
  float* gradients = backend.allocate(plan.table.block());
  const SyncSpec spec{.mode = SyncMode::gradients, .replicas = size, .ranks = size, .rank = comm.rank()};
  const auto sync = make_sync(spec, {backend, *collectives, plan, backend.layout(plan, {}), gradients});
  float* exchange = gradients + plan.table.exchange.begin;
  exchange[0] = static_cast<float>(comm.rank() + 1);
  sync->ready(0, {{plan.table.exchange.begin, 16}, SumTiming::blocking}, comm.rank());
  const float sum = 0.5F * static_cast<float>(size * (size + 1));
  EXPECT_EQ(exchange[0], sum);
  exchange[16] = exchange[0];
  sync->ready(1, {{plan.table.exchange.begin + 16, 16}, SumTiming::blocking}, comm.rank());
  EXPECT_EQ(exchange[16], sum * static_cast<float>(size));
  // Needed together: the first is there when the second is.
  exchange[32] = exchange[48] = static_cast<float>(comm.rank() + 1);
  sync->ready(4, {{plan.table.exchange.begin + 32, 16}, SumTiming::overlapped}, comm.rank());
  sync->ready(5, {{plan.table.exchange.begin + 48, 16}, SumTiming::blocking}, comm.rank());
  EXPECT_EQ(exchange[32], sum);
  EXPECT_EQ(exchange[48], sum);
  sync->ready(2, {plan.buckets[0], SumTiming::overlapped}, comm.rank());
  sync->ready(3, {plan.buckets[1], SumTiming::overlapped}, comm.rank());
  sync->replica_done(comm.rank(), 1, backend);
}

TEST_F(GradientSyncTest, RefusesSynchronisedBatchNormWhereItIsNotDefined) {
  const Plan plan = small_plan(2 * size, true);
  SmallBackend backend(plan, {});
  const auto collectives = make_mpi_collectives(comm, backend, {.replicas = 2 * size});
  const auto code = [&](SyncSpec spec) {
    spec.ranks = size;
    spec.rank = comm.rank();
    try {
      make_sync(spec, {backend, *collectives, plan, backend.layout(plan, {}), nullptr});
    } catch (const Error& e) {
      return e.code();
    }
    return Exit::ok;
  };
  EXPECT_EQ(code({.mode = SyncMode::gradients, .replicas = 2 * size}), Exit::usage);
  EXPECT_EQ(code({.mode = SyncMode::weights, .replicas = size}), Exit::usage);
  EXPECT_EQ(code({.mode = SyncMode::gradients, .local_steps = 0, .replicas = size}), Exit::usage);
}

}  // namespace
}  // namespace convoy
