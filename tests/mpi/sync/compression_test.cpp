// SPDX-License-Identifier: Apache-2.0
// Compressed gradients: what is not sent is kept, and the bits are those of the replicas, on any number of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "backend/compression_layout.hpp"
#include "mpi/sync/small_job.hpp"
#include "sync/traffic.hpp"

namespace convoy {
namespace {

constexpr Index steps = 9, values = 40;

const CompressionSpec kinds[] = {{.kind = Compression::two_bits, .threshold = 0.01},
                                 {.kind = Compression::top_k, .fraction = 0.1},
                                 {.kind = Compression::power_sgd, .rank = 2}};

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

/// Set, residuals and bases are all that goes on needs.
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

TEST_F(CompressionTest, AStepThatIsNotFiniteSendsNothing) {
  for (const CompressionSpec& compression : kinds) {
    SmallJob job(spec_of(compression, size, false), &comm);
    job.run(0, 4);
    const auto before = job.slice(job.sync->set(0), job.layout.values), bases = contents(job.sync->bases());
    job.flagged_replica = 0;
    job.flagged_step = 4;
    const auto own = contents(job.sync->residuals().front());
    job.run(4, 5);
    EXPECT_EQ(job.slice(job.sync->set(0), job.layout.values), before);
    EXPECT_EQ(contents(job.sync->bases()), bases);
    if (comm.rank() == 0) {
      EXPECT_EQ(contents(job.sync->residuals().front()), own);
    }
  }
}

TEST_F(CompressionTest, IsForGradientsInHostMemory) {
  SyncSpec weights{.mode = SyncMode::weights, .replicas = 2};
  weights.compression = kinds[0];
  EXPECT_THROW(check(weights, false), Error);
  JobSpec far = spec_of(kinds[0], 2, false);
  far.device.far = true;
  EXPECT_THROW(SmallJob(far, nullptr), Error);
}

}  // namespace
}  // namespace convoy
