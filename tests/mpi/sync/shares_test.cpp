// SPDX-License-Identifier: Apache-2.0
// What a replica counts in an average, and that averages neither grow nor shrink what they average.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.hpp"
#include "mpi/sync/small_job.hpp"
#include "support/rounding.hpp"
#include "sync/set_average.hpp"

namespace convoy {
namespace {

TEST(Shares, AddUpToExactlyOne) {
  for (std::size_t replicas = 1; replicas <= 200; ++replicas)
    for (const bool alike : {true, false}) {
      std::vector<double> parts(replicas, 640.0);
      if (!alike)
        for (std::size_t i = 0; i < replicas; ++i)
          parts[i] = static_cast<double>(i * i * 31 % 640 + (i == 0 ? 640 : 0));
      const std::vector<double> shares = shares_of(parts);
      // Multiples of one power of two: the sum in double is exact.
      EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0.0), 1.0) << replicas;
      const double total = std::accumulate(parts.begin(), parts.end(), 0.0),
                   largest = *std::max_element(parts.begin(), parts.end()) / total;
      for (std::size_t i = 0; i < replicas; ++i) {
        // Two sums are rounded to half a unit, and a unit is at most 2^(1 - share_bits) of the largest share.
        EXPECT_NEAR(shares[i], parts[i] / total, std::ldexp(largest, 1 - share_bits));
        EXPECT_EQ(shares[i] == 0, parts[i] == 0);
      }
    }
}

TEST(Shares, OfAPowerOfTwoAreThoseOfADivision) {
  for (int replicas = 1; replicas <= 1024; replicas *= 2)
    EXPECT_EQ(shares_of(std::vector<double>(static_cast<std::size_t>(replicas), 12)),
              std::vector<double>(static_cast<std::size_t>(replicas), 1.0 / replicas));
  EXPECT_EQ(shares_of({3, 0, 1}), (std::vector<double>{0.75, 0, 0.25}));
}

/// As training does it: the replicas take small steps that cancel out, and average. A share that is rounded alone would
/// let the weights grow by 3e-8 with each average of 3, 6, 12 ... replicas.
TEST(Shares, LetWeightsNeitherGrowNorShrink) {
  for (const int replicas : {3, 6, 7, 12}) {
    const Plan plan = small_plan(replicas);
    SmallBackend backend(plan, {});
    const SetLayout layout = backend.layout(plan, {});
    const auto collectives = make_alone(backend);
    const SyncSpec spec{.mode = SyncMode::weights, .reproducible = true, .replicas = replicas};
    const SyncParts parts{backend, *collectives, plan, layout, backend.allocate(plan.table.block())};
    SetAverage average(spec, parts, {0, replicas}, nullptr);
    std::vector<ParameterSet> sets;
    sets.reserve(static_cast<std::size_t>(replicas));
    for (int r = 0; r < replicas; ++r) sets.push_back({backend.allocate(layout.count()), layout.count()});
    const std::vector<Index> samples(static_cast<std::size_t>(replicas), 32);
    const Index values = layout.trained.count, averages = 50000 / replicas;
    double sum = 0;
    for (Index step = 0; step < averages; ++step) {
      Random random(static_cast<std::uint64_t>(replicas), Stream::basis, static_cast<std::uint64_t>(step));
      std::vector<double> expected(static_cast<std::size_t>(values));
      for (Index i = 0; i < values; ++i) {
        const float middle = 0.01F + random.uniform();
        for (int r = 0; r < replicas; ++r) {
          float& own = sets[static_cast<std::size_t>(r)].block[layout.trained.begin + i];
          own = middle * (1 + 1e-3F * random.uniform());
          expected[static_cast<std::size_t>(i)] += static_cast<double>(own) / replicas;
        }
      }
      ASSERT_TRUE(average.weigh(sets, samples));
      average.take_values(sets);
      average.finish();
      for (Index i = 0; i < values; ++i) {
        const double wanted = expected[static_cast<std::size_t>(i)];
        sum += (static_cast<double>(average.set().block[layout.trained.begin + i]) - wanted) / wanted;
      }
    }
    // An average errs by R roundings at most, of its products (one together) and R - 1 sums, and by what the shares
    // differ from 1/R times how far the replicas are apart. If the errors have no preferred sign, the mean of n of them
    // exceeds b sqrt(2 ln(2/p) / n) with probability p only (Hoeffding); here p = 1e-9.
    const double n = static_cast<double>(averages * values),
                 most = replicas * fp32_unit + std::ldexp(1e-3, 1 - share_bits),
                 bound = most * std::sqrt(2 * std::log(2e9) / n);
    EXPECT_LT(std::abs(sum / n), bound) << replicas;
    EXPECT_LT(bound, 2e-8) << "else the test could not fail";
  }
}

}  // namespace
}  // namespace convoy
