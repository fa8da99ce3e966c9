// SPDX-License-Identifier: Apache-2.0
// Compressed gradients: what is not sent is kept, and the bits are those of the replicas, on any number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "backend/compression_layout.hpp"
#include "mpi/sync/small_job.hpp"
#include "support/allocations.hpp"
#include "sync/compressed_sum.hpp"
#include "sync/traffic.hpp"

namespace convoy {
namespace {

constexpr Index steps = 9, values = 40;

const std::vector<CompressionSpec> kinds = [] {
  std::vector<CompressionSpec> all;
  all.reserve(all_compressions.size());
  for (const Compression kind : all_compressions)
    all.push_back({.kind = kind, .threshold = 0.1, .fraction = 0.1, .rank = 2});
  return all;
}();

JobSpec spec_of(const CompressionSpec& compression, int replicas, bool reproducible) {
  SyncSpec sync{.mode = SyncMode::gradients, .reproducible = reproducible, .replicas = replicas};
  sync.compression = compression;
  return {.sync = sync, .shares = uneven_shares};
}

std::vector<float> contents(const ParameterSet& set) { return {set.block, set.block + set.count}; }

using Case = std::tuple<int, CompressionSpec>;
class CompressionLawTest : public testing::TestWithParam<Case> {};

TEST_P(CompressionLawTest, HasTheSameBitsOnAnyNumberOfRanks) {
  const auto& [replicas, compression] = GetParam();
  Communicator& comm = communicator();
  // What travels as it is, and powersgd's factors, are sums, whose order --reproducible fixes.
  SmallJob alone(spec_of(compression, replicas, true), nullptr), job(spec_of(compression, replicas, true), &comm);
  alone.run(0, steps);
  job.run(0, steps);
  expect_same_bits(job, alone, comm);
  EXPECT_EQ(contents(job.sync->bases()), contents(alone.sync->bases()));
  ASSERT_EQ(job.sync->residuals().size(), static_cast<std::size_t>(job.replicas.count));
  for (int i = 0; i < job.replicas.count; ++i)
    EXPECT_EQ(contents(job.sync->residuals()[static_cast<std::size_t>(i)]),
              contents(alone.sync->residuals()[static_cast<std::size_t>(job.replicas.first + i)]));
  SmallJob whole(spec_of({}, replicas, true), &comm);
  whole.run(0, steps);
  EXPECT_NE(job.contents(job.sync->averaged()), whole.contents(whole.sync->averaged()));
}
INSTANTIATE_TEST_SUITE_P(Kinds, CompressionLawTest,
                         testing::Combine(testing::Values(2, 4, 7), testing::ValuesIn(kinds)));

struct CompressionTest : testing::Test {
  Communicator& comm = communicator();
  const int size = comm.size();

  /// Of all replicas, of each value: the residual.
  std::vector<double> kept(SmallJob& job) {
    std::vector<double> sums(values, 0.0);
    for (const ParameterSet& residual : job.sync->residuals())
      for (std::size_t i = 0; i < values; ++i) sums[i] += static_cast<double>(residual.block[i]);
    comm.sum(std::span<double>(sums), "residuals");
    return sums;
  }
  static float skips(SmallJob& job) { return job.layout.device_state(job.sync->set(0).block)->skipped; }
};

/// The sum that the optimiser gets, and what the replicas keep more than before, are together the sum of the gradients.
TEST_F(CompressionTest, NothingIsLost) {
  for (const CompressionSpec& compression : kinds) {
    SmallJob job(spec_of(compression, size + 1, false), &comm), whole(spec_of({}, size + 1, false), &comm);
    std::vector<double> before(values, 0.0);
    for (Index step = 0; step < steps; ++step) {
      // The same weights, so that both see the same gradients.
      whole.backend.copy(whole.sync->set(0).block, job.sync->set(0).block, job.layout.count(), 1);
      job.run(step, step + 1);
      whole.run(step, step + 1);
      const std::vector<double> after = kept(job);
      double moved = 0;
      for (std::size_t i = 0; i < values; ++i) {
        const auto sent = static_cast<double>(job.gradients[i]), all = static_cast<double>(whole.gradients[i]);
        // Gradients of a few units, up to five of them with residuals as large: some twenty roundings.
        EXPECT_NEAR(sent + after[i] - before[i], all, 20 * 0x1p-24 * 16) << name_of(compression.kind) << ' ' << i;
        moved += std::abs(after[i] - before[i]);
      }
      EXPECT_GT(moved, 0) << name_of(compression.kind);
      before = after;
    }
    // Tail and statistics travel as they are.
    EXPECT_EQ(job.slice(job.sync->averaged(), job.layout.statistics),
              whole.slice(whole.sync->averaged(), whole.layout.statistics));
  }
}

TEST_F(CompressionTest, SendsAsManyBytesAsItsTrafficSays) {
  for (const CompressionSpec& compression : kinds)
    for (const bool reproducible : {false, true}) {
      SmallJob job(spec_of(compression, 2 * size, reproducible), &comm);
      job.run(0, 6);
      std::int64_t sent = *job.collectives->sent_bytes();
      comm.sum(std::span<std::int64_t>(&sent, 1), "bytes");
      const Traffic traffic = traffic_of(job.spec.sync, job.plan, job.layout);
      EXPECT_EQ(sent, 6 * bytes_sent(traffic, size)) << name_of(compression.kind);
      // By hand: a matrix of 5 x 8, 32 statistics and the flags.
      const Index replicas = 2 * size, sums = align_floats(32 + replicas);
      Index expected = 0;
      if (compression.kind == Compression::two_bits) expected = 2 * 4 * sums + replicas * 12;  // 40 / 4, in fours
      if (compression.kind == Compression::top_k) expected = 2 * 4 * sums + replicas * 4 * 8;
      if (compression.kind == Compression::power_sgd) expected = 2 * 4 * (sums + 16 + 16);
      EXPECT_EQ(bytes_sent(traffic, size), (size - 1) * expected) << name_of(compression.kind);
    }
}

/// A job needs only its set, residuals and bases to continue exactly.
TEST_F(CompressionTest, GoesOnFromItsState) {
  for (const CompressionSpec& compression : kinds) {
    const JobSpec spec = spec_of(compression, size + 1, false);
    SmallJob straight(spec, &comm), first(spec, &comm), second(spec, &comm);
    straight.run(0, steps);
    first.run(0, 5);
    second.backend.copy(second.sync->set(0).block, first.sync->set(0).block, first.layout.count(), 1);
    for (std::size_t i = 0; i < first.sync->residuals().size(); ++i) {
      const ParameterSet& from = first.sync->residuals()[i];
      second.backend.copy(second.sync->residuals()[i].block, from.block, from.count, 1);
    }
    if (const ParameterSet bases = first.sync->bases(); bases.count > 0)
      second.backend.copy(second.sync->bases().block, bases.block, bases.count, 1);
    second.run(5, steps);
    EXPECT_EQ(second.contents(second.sync->averaged()), straight.contents(straight.sync->averaged()));
  }
}

/// A step that is not finite leaves nothing in any residual: not in that of the faulty replica, nor in the others'.
/// Ranks have one replica or two, so a rank's last turn may have none.
TEST_F(CompressionTest, AStepThatIsNotFiniteLeavesNothing) {
  for (const CompressionSpec& compression : kinds)
    for (const int replicas : {size, size + 1, 2 * size}) {
      SmallJob job(spec_of(compression, replicas, false), &comm);
      job.run(0, 4);
      const auto before = job.slice(job.sync->set(0), job.layout.values), bases = contents(job.sync->bases());
      std::vector<std::vector<float>> own;
      for (const ParameterSet& residual : job.sync->residuals()) own.push_back(contents(residual));
      job.flagged_replica = 0;
      job.flagged_step = 4;
      job.run(4, 5);
      EXPECT_EQ(job.slice(job.sync->set(0), job.layout.values), before);
      EXPECT_EQ(contents(job.sync->bases()), bases);
      ASSERT_EQ(job.sync->residuals().size(), own.size());
      for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(contents(job.sync->residuals()[i]), own[i]);
      // Whoever measures gradients sees that there was none.
      EXPECT_TRUE(std::all_of(job.gradients, job.gradients + values, [](float value) { return std::isnan(value); }));
      job.run(5, 6);
      EXPECT_NE(job.slice(job.sync->set(0), job.layout.values), before);
    }
}

/// It is a sum over samples, as in MXNet, and a step's gradient their mean: steps of other sizes send other amounts.
TEST_F(CompressionTest, TheThresholdIsThatOfTheStep) {
  constexpr double threshold = 0.3;
  SmallJob job(spec_of({.kind = Compression::two_bits, .threshold = threshold}, size + 1, false), &comm);
  std::set<Index> samples;
  for (Index step = 0; step < steps; ++step) {
    job.run(step, step + 1);
    const auto each = static_cast<float>(threshold * static_cast<double>(job.sync->scale(0, job.samples_of(step))));
    bool moved = false;
    for (Index i = 0; i < values; ++i) {
      const float sent = std::round(job.gradients[i] / each);
      EXPECT_LE(std::abs(sent), static_cast<float>(size + 1));
      EXPECT_EQ(job.gradients[i], sent * each);
      moved = moved || sent != 0;
    }
    if (moved) samples.insert(job.samples_of(step));
  }
  EXPECT_GT(samples.size(), 1U);
}

/// Large gradients are no reason to lose a job: PowerSGD's factors grow with them, not with their squares. Those of the
/// three steps are near 1e12, 1e23 and 1e34, since weights follow them.
TEST_F(CompressionTest, LargeGradientsStayFinite) {
  SmallJob job(spec_of({.kind = Compression::power_sgd, .rank = 2}, size + 1, false), &comm);
  job.gradient_factor = 1e12F;
  job.run(0, 3);
  EXPECT_EQ(skips(job), 0);
  for (const float value : job.slice(job.sync->set(0), job.layout.values)) EXPECT_TRUE(std::isfinite(value));
  for (const float value : contents(job.sync->bases())) EXPECT_LE(std::abs(value), 2.0F);
}

/// Finite gradients whose factors aren't, or whose sum with what was kept isn't: that step is lost, later ones are not.
TEST_F(CompressionTest, RecoversFromWhatIsBeyondFloat) {
  for (const CompressionSpec& compression : kinds) {
    SmallJob job(spec_of(compression, size + 1, false), &comm);
    job.run(0, 2);
    const auto before = job.slice(job.sync->set(0), job.layout.values);
    for (const ParameterSet& residual : job.sync->residuals()) {
      std::fill_n(residual.block, 8, 3e38F);
      residual.block[8] = std::numeric_limits<float>::quiet_NaN();
    }
    const float skipped = skips(job);
    job.run(2, 3);
    if (compression.kind == Compression::power_sgd) {
      EXPECT_EQ(skips(job), skipped + 1);
      EXPECT_EQ(job.slice(job.sync->set(0), job.layout.values), before);
      for (const ParameterSet& residual : job.sync->residuals())
        EXPECT_EQ(contents(residual), std::vector<float>(static_cast<std::size_t>(residual.count), 0.0F));
      EXPECT_EQ(contents(job.sync->bases()), first_bases(compression_layout(job.plan.table, compression)));
    } else {
      for (const ParameterSet& residual : job.sync->residuals())
        for (const float value : contents(residual)) EXPECT_TRUE(std::isfinite(value));
    }
    for (const ParameterSet& residual : job.sync->residuals()) std::fill_n(residual.block, residual.count, 0.0F);
    if (compression.kind == Compression::top_k) continue;  // has sent what was kept: its weights are as large
    job.run(3, 6);
    for (const float value : job.slice(job.sync->set(0), job.layout.values)) EXPECT_TRUE(std::isfinite(value));
    EXPECT_NE(job.slice(job.sync->set(0), job.layout.values), before);
  }
}

/// What a job is told to need is what it takes: estimates of memory are made before.
TEST_F(CompressionTest, TakesTheMemoryThatItsEstimateSays) {
  const Plan plan = large_plan(7);
  const ParameterTable& table = plan.table;
  SmallBackend backend(plan, {});
  for (const CompressionSpec& compression : kinds)
    for (const bool reproducible : {false, true}) {
      SyncSpec spec{.mode = SyncMode::gradients, .reproducible = reproducible, .replicas = 7, .ranks = size};
      spec.rank = comm.rank();
      spec.compression = compression;
      const auto collectives = make_alone(backend);
      const SyncParts parts{backend, *collectives, plan, {}, backend.allocate(table.block())};
      const long before = count_allocated_bytes();
      const CompressedSum sum(spec, parts);
      const Index taken = count_allocated_bytes() - before, told = 4 * compression_floats(spec, table);
      // Beside it: ends of blocks, lists of a few tensors, replicas and ranks.
      EXPECT_GE(taken, told) << name_of(compression.kind);
      EXPECT_LE(taken, told + (1 << 14)) << name_of(compression.kind);
      EXPECT_GT(told, 1 << 18);
    }
}

TEST_F(CompressionTest, MessagesAreNoLargerThanMpiCanSay) {
  const Plan plan = small_plan(2);
  SyncSpec spec{.mode = SyncMode::gradients, .replicas = std::numeric_limits<int>::max() / 12};
  spec.compression = {.kind = Compression::two_bits};  // 40 values of 2 bits take 10 bytes, rounded up to 12
  EXPECT_NO_THROW(check_messages(spec, plan.table, GradientMemory::host));
  EXPECT_THROW(check_messages(spec, plan.table, GradientMemory::device), Error);
  ++spec.replicas;
  EXPECT_THROW(check_messages(spec, plan.table, GradientMemory::host), Error);
}

TEST_F(CompressionTest, IsForGradientsInHostMemory) {
  SyncSpec weights{.mode = SyncMode::weights, .replicas = 2};
  weights.compression = {.kind = Compression::two_bits};
  EXPECT_THROW(check(weights, BatchNormSamples::of_replica), Error);
  JobSpec far = spec_of({.kind = Compression::two_bits}, 2, false);
  far.device.far = true;
  EXPECT_THROW(SmallJob(far, nullptr), Error);
}

}  // namespace
}  // namespace convoy
