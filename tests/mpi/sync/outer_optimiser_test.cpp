// SPDX-License-Identifier: Apache-2.0
#include "sync/outer_optimiser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "mpi/sync/small_job.hpp"
#include "support/rounding.hpp"

namespace convoy {
namespace {

struct OuterOptimiserTest : testing::Test {
  Communicator& comm = communicator();
  const int size = comm.size();

  static JobSpec spec(int replicas, const OuterSpec& outer, Index local_steps = 3) {
    return {.sync = {.mode = SyncMode::weights,
                     .local_steps = local_steps,
                     .momentum = MomentumPolicy::keep,
                     .outer = outer,
                     .reproducible = true,
                     .replicas = replicas},
            .shares = uneven_shares};
  }
  /// Weights as load_sets and load_outer leave them after a checkpoint of another job.
  static void copy_state(SmallJob& to, const SmallJob& from) {
    for (int r = from.replicas.first; r < from.replicas.first + from.replicas.count; ++r)
      to.backend.copy(to.sync->set(r).block, from.sync->set(r).block, from.layout.count(), 1);
    to.backend.copy(to.sync->outer().block, from.sync->outer().block, from.sync->outer().count, 1);
    to.sync->restore(from.sync->samples_since_average());
  }
  static std::vector<float> outer_of(const SmallJob& job) {
    const ParameterSet set = job.sync->outer();
    return {set.block, set.block + set.count};
  }
};

/// The whole job in double, one weight after the other: replicas' SGD with momentum, the average by samples, the outer
/// step as the papers write it.
struct Reference {
  const JobSpec& job;
  Index parameter;
  std::vector<double> weights, velocities;
  std::vector<Index> samples;
  double anchor, momentum = 0;

  Reference(const JobSpec& spec, Index i)
      : job(spec),
        parameter(i),
        weights(static_cast<std::size_t>(spec.sync.replicas), static_cast<double>(0.1F * static_cast<float>(i % 7))),
        velocities(weights.size(), 0.0),
        samples(weights.size(), 0),
        anchor(weights.front()) {}

  void train(Index step) {
    for (std::size_t r = 0; r < weights.size(); ++r) {
      const Index count = job.shares(step, static_cast<int>(r));
      samples[r] += count;
      if (count == 0) continue;
      double gradient = 0;
      for (Index j = 0; j < count; ++j) {
        const Sample s = sample(step, static_cast<int>(r), j, parameter);
        gradient += (static_cast<double>(s.a) * weights[r] - static_cast<double>(s.b)) / static_cast<double>(count);
      }
      velocities[r] = 0.9 * velocities[r] + gradient;
      weights[r] -= 0.1 * velocities[r];
    }
  }
  void average() {
    const OuterSpec& outer = job.sync.outer;
    double mean = 0;
    const std::vector<double> shares = shares_of({samples.begin(), samples.end()});
    for (std::size_t r = 0; r < weights.size(); ++r) mean += shares[r] * weights[r];
    const double change = anchor - mean;
    momentum = outer.momentum * momentum + change;
    if (outer.rule == OuterRule::momentum) anchor -= outer.rate * momentum;
    if (outer.rule == OuterRule::nesterov) anchor -= outer.rate * (change + outer.momentum * momentum);
    std::fill(weights.begin(), weights.end(), anchor);
    std::fill(samples.begin(), samples.end(), 0);
  }
};

TEST_F(OuterOptimiserTest, FiveOfItsPeriodsAreThoseOfTheFormulas) {
  for (const OuterSpec& outer : {OuterSpec{OuterRule::momentum, 0.9, 0.6}, OuterSpec{OuterRule::nesterov, 0.7, 0.9}})
    for (const int replicas : {1, 3, 2 * size + 1}) {
      const JobSpec job_spec = spec(replicas, outer);
      SmallJob job(job_spec, &comm);
      std::vector<Reference> references;
      for (Index i = 0; i < 40; ++i) references.emplace_back(job_spec, i);
      for (Index period = 0; period < 5; ++period) {
        job.run(3 * period, 3 * period + 3);
        for (Reference& reference : references) {
          for (Index step = 3 * period; step < 3 * period + 3; ++step) reference.train(step);
          reference.average();
        }
        const auto found = job.contents(job.sync->averaged());
        const auto state = outer_of(job);
        const Index momentum = outer_layout(job.layout).momentum.begin;
        for (Index i = 0; i < 40; ++i) {
          const Reference& reference = references[static_cast<std::size_t>(i)];
          EXPECT_NEAR(found[static_cast<std::size_t>(i)], reference.anchor, 1e-6) << period << ' ' << i;
          EXPECT_EQ(state[static_cast<std::size_t>(i)], found[static_cast<std::size_t>(i)]) << "the anchor";
          EXPECT_NEAR(state[static_cast<std::size_t>(momentum + i)], reference.momentum, 1e-6) << period << ' ' << i;
        }
        for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
          EXPECT_EQ(job.slice(job.sync->set(r), job.layout.values), job.slice(job.sync->averaged(), job.layout.values));
      }
    }
}

TEST_F(OuterOptimiserTest, HasTheSameBitsOnAnyNumberOfRanks) {
  for (const OuterRule rule : {OuterRule::momentum, OuterRule::nesterov}) {
    const JobSpec job_spec = spec(6, {rule, 0.7, 0.9});
    SmallJob job(job_spec, &comm), alone(job_spec, nullptr);
    job.run(0, 10);
    alone.run(0, 10);
    EXPECT_EQ(outer_of(job), outer_of(alone));
    EXPECT_EQ(job.contents(job.sync->averaged()), alone.contents(alone.sync->averaged()));
    for (int r = job.replicas.first; r < job.replicas.first + job.replicas.count; ++r)
      EXPECT_EQ(job.contents(job.sync->set(r)), alone.contents(alone.sync->set(r)));
  }
  // Also where sums have no fixed order, since all ranks take one sum and compute alike.
  JobSpec free_spec = spec(2 * size + 1, {OuterRule::nesterov, 0.7, 0.9});
  free_spec.sync.reproducible = false;
  SmallJob job(free_spec, &comm);
  job.run(0, 10);
  EXPECT_TRUE(equal_on_all_ranks(comm, outer_of(job)));
}

TEST_F(OuterOptimiserTest, WithoutMomentumAndAtRateOneItIsTheAverage) {
  SmallJob job(spec(size + 1, {OuterRule::nesterov, 1, 0}, 2), &comm), plain(spec(size + 1, {}, 2), &comm);
  EXPECT_EQ(plain.sync->outer().block, nullptr);
  job.run(0, 2);
  plain.run(0, 2);
  const auto found = job.contents(job.sync->averaged()), expected = plain.contents(plain.sync->averaged());
  for (Index i = 0; i < 40; ++i) {
    // The change and the step back are each rounded once.
    const double magnitude = std::abs(static_cast<double>(expected[static_cast<std::size_t>(i)])) + 0.6;
    EXPECT_NEAR(found[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i)], 2 * fp32_unit * magnitude);
  }
  // Statistics and momentum of the replicas are what they are without it.
  for (const Range& range : {job.layout.optimiser, job.layout.statistics, job.layout.state})
    for (Index i = range.begin; i < range.end(); ++i)
      EXPECT_EQ(found[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i)]) << i;
}

TEST_F(OuterOptimiserTest, FollowsThePlainAveragesOfPostLocalSgdUntilPeriodsBegin) {
  JobSpec job_spec = spec(size + 1, {OuterRule::momentum, 0.9, 0.6}, 2), plain_spec = spec(size + 1, {}, 2);
  job_spec.sync.local_start = plain_spec.sync.local_start = 3;
  SmallJob job(job_spec, &comm), plain(plain_spec, &comm);
  job.run(0, 3);
  plain.run(0, 3);
  EXPECT_EQ(job.contents(job.sync->averaged()), plain.contents(plain.sync->averaged()));
  const OuterLayout at = outer_layout(job.layout);
  std::vector<float> state = outer_of(job);
  EXPECT_TRUE(std::equal(state.begin(), state.begin() + at.anchor.count, job.sync->averaged().block));
  EXPECT_EQ(std::vector<float>(state.begin() + at.momentum.begin, state.end()),
            std::vector<float>(static_cast<std::size_t>(at.momentum.count), 0.0F));
  job.run(3, 4);
  plain.run(3, 4);
  EXPECT_NE(job.contents(job.sync->averaged()), plain.contents(plain.sync->averaged()));
}

TEST_F(OuterOptimiserTest, GoesOnFromItsStateInTheMiddleOfAPeriod) {
  for (const OuterRule rule : {OuterRule::momentum, OuterRule::nesterov})
    for (const Index stop : {5, 6, 7}) {
      const JobSpec job_spec = spec(2 * size + 1, {rule, 0.7, 0.9});
      SmallJob straight(job_spec, &comm), first(job_spec, &comm), second(job_spec, &comm);
      straight.run(0, 12);
      first.run(0, stop);
      first.sync->averaged();  // as a checkpoint takes it
      copy_state(second, first);
      second.run(stop, 12);
      EXPECT_EQ(outer_of(second), outer_of(straight)) << "from " << stop;
      EXPECT_EQ(second.contents(second.sync->averaged()), straight.contents(straight.sync->averaged()));
    }
}

/// More weights than one piece holds.
TEST_F(OuterOptimiserTest, TakesEveryWeightOfALargeSet) {
  Plan plan = small_plan(1);
  plan.table.parameters.count = (1 << 19) + 48;
  SmallBackend backend(plan, {});
  const SetLayout layout = backend.layout(plan, {});
  const auto collectives = make_alone(backend);
  OuterOptimiser optimiser({OuterRule::nesterov, 0.5, 0.25}, {backend, *collectives, plan, layout, nullptr});
  const ParameterSet average{backend.allocate(layout.count()), layout.count()};
  const OuterLayout at = outer_layout(layout);
  backend.fill(optimiser.state().block + at.anchor.begin, at.anchor.count, 8);
  backend.fill(optimiser.state().block + at.momentum.begin, at.momentum.count, 16);
  backend.fill(average.block, layout.count(), 4);
  optimiser.step(average);
  // d = 4, m = 0.25 * 16 + 4 = 8, a = 8 - 0.5 * (4 + 0.25 * 8) = 5.
  for (Index i = 0; i < layout.count(); ++i) ASSERT_EQ(average.block[i], i < layout.values.count ? 5.0F : 4.0F) << i;
  for (Index i = 0; i < at.anchor.count; ++i) {
    ASSERT_EQ(optimiser.state().block[at.anchor.begin + i], 5) << i;
    ASSERT_EQ(optimiser.state().block[at.momentum.begin + i], 8) << i;
  }
}

}  // namespace
}  // namespace convoy
