// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "mpi/sync/small_job.hpp"
#include "support/rounding.hpp"

namespace convoy {
namespace {

struct WeightSyncTest : testing::Test {
  Communicator& comm = communicator();
  const int size = comm.size();

  static JobSpec spec(int replicas, Index local_steps, MomentumPolicy momentum = MomentumPolicy::keep) {
    return {.sync = {.mode = SyncMode::weights, .local_steps = local_steps, .momentum = momentum, .replicas = replicas},
            .shares = uneven_shares};
  }
  /// Values of all replicas as a job without averages leaves them.
  static std::vector<std::vector<float>> apart(const JobSpec& spec, Index steps, SmallJob& alone) {
    alone.run(0, steps);
    std::vector<std::vector<float>> sets;
    sets.reserve(static_cast<std::size_t>(spec.sync.replicas));
    for (int r = 0; r < spec.sync.replicas; ++r) sets.push_back(alone.contents(alone.sync->set(r)));
    return sets;
  }
  static std::vector<double> weights(const JobSpec& spec, Index steps) {
    std::vector<double> samples(static_cast<std::size_t>(spec.sync.replicas));
    for (int r = 0; r < spec.sync.replicas; ++r)
      for (Index s = 0; s < steps; ++s) samples[static_cast<std::size_t>(r)] += static_cast<double>(spec.shares(s, r));
    return shares_of(samples);
  }
};

TEST_F(WeightSyncTest, WeighsReplicasByTheirSamples) {
  for (const int replicas : {3, 2 * size + 1}) {
    JobSpec job_spec = spec(replicas, 3, MomentumPolicy::average);
    job_spec.mean = 300;  // E[x^2] around zero would lose half of the variance's digits
    SmallJob job(job_spec, &comm);
    JobSpec alone_spec = job_spec;
    alone_spec.sync.local_steps = 1000;
    SmallJob alone(alone_spec, nullptr);
    const auto sets = apart(alone_spec, 3, alone);
    const auto share = weights(job_spec, 3);
    job.run(0, 3);
    EXPECT_FALSE(job.sync->needs_shards());
    EXPECT_EQ(job.sync->samples_since_average(), std::vector<Index>(static_cast<std::size_t>(job.replicas.count), 0));
    const auto found = job.contents(job.sync->averaged());
    const auto mean_of = [&](Index i) {
      double sum = 0;
      for (std::size_t r = 0; r < sets.size(); ++r)
        sum += share[r] * static_cast<double>(sets[r][static_cast<std::size_t>(i)]);
      return sum;
    };
    const auto magnitude_of = [&](Index i) {
      double sum = 0;
      for (std::size_t r = 0; r < sets.size(); ++r) sum += share[r] * std::abs(sets[r][static_cast<std::size_t>(i)]);
      return sum;
    };
    // Of every term the product is rounded, and each addition; then what is stored.
    const double unit = static_cast<double>(sets.size() + 4) * fp32_unit;
    for (Index i = 0; i < job.layout.optimiser.end(); ++i)
      EXPECT_NEAR(found[static_cast<std::size_t>(i)], mean_of(i), unit * magnitude_of(i)) << i;
    for (Index c = 0; c < 3; ++c) {
      const Index mean = job.layout.statistics.begin + c, variance = mean + 16;
      EXPECT_NEAR(found[static_cast<std::size_t>(mean)], mean_of(mean), unit * magnitude_of(mean));
      double squares = 0;
      for (std::size_t r = 0; r < sets.size(); ++r) {
        const auto m = static_cast<double>(sets[r][static_cast<std::size_t>(mean)]);
        squares += share[r] * (static_cast<double>(sets[r][static_cast<std::size_t>(variance)]) + m * m);
      }
      const double expected = squares - mean_of(mean) * mean_of(mean);
      EXPECT_NEAR(found[static_cast<std::size_t>(variance)], expected,
                  2 * unit * (squares + mean_of(mean) * mean_of(mean)));
    }
    // Every replica and every rank goes on from the same bits.
    EXPECT_TRUE(equal_on_all_ranks(comm, found));
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
      EXPECT_EQ(job.contents(job.sync->set(r)), found) << r;
  }
}

TEST_F(WeightSyncTest, KeepsAveragesOrResetsMomentum) {
  const int replicas = size + 1;
  for (const MomentumPolicy policy : {MomentumPolicy::keep, MomentumPolicy::average, MomentumPolicy::reset}) {
    const JobSpec job_spec = spec(replicas, 2, policy);
    SmallJob job(job_spec, &comm);
    JobSpec alone_spec = job_spec;
    alone_spec.sync.local_steps = 1000;
    SmallJob alone(alone_spec, nullptr);
    const auto sets = apart(alone_spec, 2, alone);
    job.run(0, 1);
    job.sync->averaged();  // leaves an average momentum behind
    job.run(1, 2);
    const auto range = job.layout.optimiser;
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r) {
      const auto own = job.slice(job.sync->set(r), range);
      if (policy == MomentumPolicy::keep) {
        EXPECT_EQ(own, alone.slice(alone.sync->set(r), range));
      }
      if (policy == MomentumPolicy::reset) {
        EXPECT_EQ(own, std::vector<float>(own.size(), 0.0F));
      }
      EXPECT_EQ(job.slice(job.sync->set(r), job.layout.values),
                job.slice(job.sync->set(job.replicas.first), job.layout.values));
    }
    EXPECT_EQ(job.sync->needs_shards(), policy == MomentumPolicy::keep);
    const DeviceState state = *job.layout.device_state(job.sync->averaged().block);
    EXPECT_EQ(state.applied, 2);
    EXPECT_EQ(state.slots_zeroed, policy == MomentumPolicy::reset ? 2 : 0);
    EXPECT_TRUE(job.sync->values_are_current());
    // The averaged model has the average momentum, except where it was reset.
    const auto share = weights(job_spec, 2);
    const auto found = job.contents(job.sync->averaged());
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r) {
      EXPECT_EQ(job.slice(job.sync->set(r), job.layout.values), job.slice(job.sync->averaged(), job.layout.values));
    }
    for (Index i = range.begin; i < range.end(); ++i) {
      double expected = 0, magnitude = 0;
      for (std::size_t r = 0; r < sets.size() && policy != MomentumPolicy::reset; ++r) {
        const double term = share[r] * static_cast<double>(sets[r][static_cast<std::size_t>(i)]);
        expected += term;
        magnitude += std::abs(term);
      }
      const double unit = static_cast<double>(sets.size() + 4) * fp32_unit;
      EXPECT_NEAR(found[static_cast<std::size_t>(i)], expected, unit * magnitude);
    }
  }
}

TEST_F(WeightSyncTest, AveragesWhenDue) {
  JobSpec job_spec = spec(2 * size + 1, 4, MomentumPolicy::average);
  job_spec.sync.local_start = 3;
  SmallJob job(job_spec, &comm);
  std::vector<Index> averaged;
  for (Index step = 0; step < 12; ++step) {
    job.run(step, step + 1);
    if (!job.sync->needs_shards()) averaged.push_back(step);
  }
  EXPECT_EQ(averaged, (std::vector<Index>{0, 1, 2, 3, 7, 11}));
}

TEST_F(WeightSyncTest, EvaluatesWithoutTouchingReplicas) {
  SmallJob job(spec(size + 2, 100), &comm), untouched(spec(size + 2, 100), &comm);
  for (Index step = 0; step < 6; ++step) {
    job.run(step, step + 1);
    untouched.run(step, step + 1);
    const auto first = job.contents(job.sync->averaged());
    EXPECT_EQ(job.contents(job.sync->averaged()), first);
    EXPECT_EQ(job.backend.refreshed.back(), job.sync->averaged().block);
    EXPECT_FALSE(job.sync->values_are_current());
    EXPECT_TRUE(job.sync->needs_shards());
  }
  EXPECT_EQ(job.sync->samples_since_average(), untouched.sync->samples_since_average());
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
    EXPECT_EQ(job.contents(job.sync->set(r)), untouched.contents(untouched.sync->set(r)));
}

/// What a moving average reads: the averaged model without what it doesn't need, also in the middle of a period.
TEST_F(WeightSyncTest, AveragesWeightsAlone) {
  for (const int replicas : {1, 2 * size + 1}) {
    SmallJob job(spec(replicas, 2), &comm), whole(spec(replicas, 2), &comm);
    for (Index step = 0; step < 5; ++step) {
      job.run(step, step + 1);
      whole.run(step, step + 1);
      const std::size_t refreshed = job.backend.refreshed.size();
      const auto found = job.contents(job.sync->averaged_weights()), expected = whole.contents(whole.sync->averaged());
      EXPECT_EQ(job.backend.refreshed.size(), refreshed);
      for (const Range& range : {job.layout.values, job.layout.statistics})
        for (Index i = range.begin; i < range.end(); ++i)
          EXPECT_EQ(found[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i)]) << step << ' ' << i;
      EXPECT_TRUE(equal_on_all_ranks(comm, job.slice(job.sync->averaged_weights(), job.layout.values)));
      if (step % 2 == 0) {
        EXPECT_EQ(job.contents(job.sync->averaged()), expected) << "the optimiser state follows";
      }
    }
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
      EXPECT_EQ(job.contents(job.sync->set(r)), whole.contents(whole.sync->set(r)));
  }
}

/// Three thirds of a float are not always the float.
TEST_F(WeightSyncTest, TakesOneReplicaWhereAllAreEqual) {
  for (const int replicas : {1, 3}) {
    SmallJob job(spec(replicas, 1), &comm);
    const SmallJob alone(spec(replicas, 1), nullptr);
    const auto start = alone.contents(alone.sync->set(0));
    EXPECT_EQ(job.contents(job.sync->averaged()), start);  // also on ranks without replicas
    job.spec.shares = [](Index, int) { return Index{0}; };
    job.run(0, 2);
    EXPECT_EQ(job.contents(job.sync->averaged()), start);
  }
}

TEST_F(WeightSyncTest, GoesOnFromShardsInTheMiddleOfAPeriod) {
  for (const MomentumPolicy policy : {MomentumPolicy::keep, MomentumPolicy::average})
    for (const Index stop : {3, 4, 5}) {
      SmallJob straight(spec(2 * size + 1, 4, policy), &comm), first(spec(2 * size + 1, 4, policy), &comm),
          second(spec(2 * size + 1, 4, policy), &comm);
      straight.run(0, 10);
      first.run(0, stop);
      const int begin = first.replicas.first, end = begin + first.replicas.count;
      for (int r = begin; r < end; ++r)
        second.backend.copy(second.sync->set(r).block, first.sync->set(r).block, first.layout.count(), 1);
      second.sync->restore(first.sync->samples_since_average());
      second.run(stop, 10);
      for (int r = begin; r < end; ++r)
        EXPECT_EQ(second.contents(second.sync->set(r)), straight.contents(straight.sync->set(r)))
            << r << " from " << stop;
      EXPECT_EQ(second.contents(second.sync->averaged()), straight.contents(straight.sync->averaged()));
    }
}

TEST_F(WeightSyncTest, SkipsOnlyTheReplicaThatIsNotFiniteAndTakesTheLowestLossScale) {
  JobSpec job_spec = spec(size + 1, 2, MomentumPolicy::average);
  job_spec.shares = even_shares;
  SmallJob job(job_spec, &comm);
  job.flagged_replica = size;
  job.flagged_step = 0;
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r) {
    DeviceState& state = *job.layout.device_state(job.sync->set(r).block);
    state.loss_scale = r == size ? 512.0F : 1024.0F;
    state.good_steps = static_cast<float>(r + 3);
  }
  job.run(0, 2);
  const DeviceState& averaged = *job.layout.device_state(job.sync->averaged().block);
  EXPECT_EQ(averaged.loss_scale, 512);
  EXPECT_EQ(averaged.good_steps, 3);
  EXPECT_EQ(averaged.applied, 2) << "by the others";
  EXPECT_EQ(averaged.skipped, 1);
  const auto state = job.slice(job.sync->averaged(), job.layout.state);
  for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
    EXPECT_EQ(job.slice(job.sync->set(r), job.layout.state), state);
}

TEST_F(WeightSyncTest, DividesByTheReplicasOwnBatch) {
  SmallJob job(spec(size, 1), &comm);
  EXPECT_EQ(job.sync->scale(5, 20), 0.2F);
  EXPECT_EQ(job.sync->scale(0, 20), 0);
  EXPECT_TRUE(job.sync->capturable(0));
}

}  // namespace
}  // namespace convoy
