// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "comm/communicator.hpp"
#include "comm/shared_memory.hpp"
#include "support/host_device.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

Communicator& ranks() {
  static Communicator instance(test_session(), {.warn_seconds = 20, .abort_seconds = 30});
  return instance;
}

TEST(SharedMemoryTest, IsTheSameOnAllRanksAndZeroed) {
  const auto size = static_cast<std::size_t>(ranks().size());
  const SharingResult shared = share_memory(ranks(), size * sizeof(int));
  ASSERT_EQ(shared.problem, "");
  const auto values = reinterpret_cast<volatile int*>(shared.memory->data());
  for (int r = 0; r < ranks().size(); ++r) ASSERT_EQ(values[r], 0);
  ranks().barrier("all have looked");
  values[ranks().rank()] = ranks().rank() + 1;
  ranks().barrier("all have written");
  for (int r = 0; r < ranks().size(); ++r) EXPECT_EQ(values[r], r + 1);
}

/// A rank that can open no file more, and no rank has memory.
TEST(SharedMemoryTest, NamesTheRankThatHasNone) {
  const int last = ranks().size() - 1;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (ranks().rank() == last) {
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  const SharingResult shared = share_memory(ranks(), 1000);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(shared.memory, nullptr);
  EXPECT_EQ(shared.problem, fmt::format("rank {} can't share memory: {}", last, std::strerror(EMFILE)));
}

TEST(SharedSumTest, FallsBackToTheLibraryWithoutMemory) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  HostDevice device;
  const auto sums = make_mpi_collectives(
      ranks(), device, {.replicas = ranks().size(), .max_count = 100, .host_sums = HostSums::shared_memory});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  float* const values = device.allocate(100);
  std::fill_n(values, 100, 1.0F);
  const Part part{ranks().rank(), 1, values};
  sums->finish(sums->submit({values, std::span(&part, 1), 100, {}, "sum"}));
  for (Index i = 0; i < 100; ++i) ASSERT_EQ(values[i], static_cast<float>(ranks().size()));
}

/// What rank `r` adds to element i: sums of these depend on the order of the additions.
float term(int r, Index i) {
  return (r % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(1 << (5 * r)) / static_cast<float>(i % 97 + 1);
}

/// Pieces of all lanes, several times each, of sizes that no number of ranks divides, and sums of fewer floats than
/// ranks.
TEST(SharedSumTest, AddsInTheOrderOfRanks) {
  const int size = ranks().size(), rank = ranks().rank();
  constexpr Index largest = 3'000'001;
  HostDevice device;
  const auto sums = make_mpi_collectives(
      ranks(), device, {.replicas = size, .max_count = largest, .host_sums = HostSums::shared_memory});
  float* const values = device.allocate(largest);
  const Part part{rank, 1, values};
  Index sent = 0;
  for (const Index count : {Index{1}, Index{2}, Index{17}, largest, Index{999'983}}) {
    for (Index i = 0; i < count; ++i) values[i] = term(rank, i);
    sums->finish(sums->submit({values, std::span(&part, 1), count, {}, "sum"}));
    for (Index i = 0; i < count; ++i) {
      float expected = term(0, i);
      for (int r = 1; r < size; ++r) expected += term(r, i);
      ASSERT_EQ(values[i], expected) << i << " of " << count;
    }
    sent += 2 * (size - 1) * count * 4;
  }
  std::int64_t all = *sums->sent_bytes();
  ranks().sum(std::span(&all, 1), "bytes of all ranks");
  EXPECT_EQ(all, sent);
}

}  // namespace
}  // namespace convoy
