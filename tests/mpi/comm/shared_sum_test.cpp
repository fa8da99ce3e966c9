// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

/// While it lives, this process can open no file more.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 1024), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int taken = dup(0); taken >= 0; taken = dup(0)) taken_.push_back(taken);
  }
  ~NoMoreFiles() {
    for (const int descriptor : taken_) close(descriptor);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST(SharedMemoryTest, NamesTheRankThatHasNone) {
  const int last = ranks().size() - 1;
  std::optional<NoMoreFiles> full;
  if (ranks().rank() == last) full.emplace();
  const SharingResult shared = share_memory(ranks(), 1000);
  EXPECT_EQ(shared.memory, nullptr);
  EXPECT_EQ(shared.problem, fmt::format("rank {} can't share memory: {}", last, std::strerror(EMFILE)));
}

struct Made {
  std::unique_ptr<Collectives> collectives;
  std::string warning;
};

Made make_shared_sums(Device& device, Index largest) {
  testing::internal::CaptureStderr();
  Made made{
      .collectives = make_mpi_collectives(
          ranks(), device, {.replicas = ranks().size(), .max_count = largest, .host_sums = HostSums::shared_memory})};
  made.warning = testing::internal::GetCapturedStderr();
  return made;
}

TEST(SharedSumTest, FallsBackToTheLibraryAndSaysSo) {
  std::optional<NoMoreFiles> full;
  HostDevice device;
  // The capture takes a file.
  testing::internal::CaptureStderr();
  full.emplace();
  const auto sums = make_mpi_collectives(
      ranks(), device, {.replicas = ranks().size(), .max_count = 100, .host_sums = HostSums::shared_memory});
  full.reset();
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_EQ(warning.find("the all-reduce goes through MPI") != std::string::npos,
            ranks().rank() == 0 && ranks().size() > 1)
      << warning;
  float* const values = device.allocate(100);
  std::fill_n(values, 100, 1.0F);
  const Part part{ranks().rank(), 1, values};
  sums->finish(sums->submit({values, std::span(&part, 1), 100, {}, "sum"}));
  for (Index i = 0; i < 100; ++i) ASSERT_EQ(values[i], static_cast<float>(ranks().size()));
}

TEST(TransportTest, SharesMemoryIfItCan) {
  const auto choose = [](const TransportWish& wish, const std::string& problem) {
    return choose_transport(wish, {.identities = {"", ""}, .nccl_problem = {}, .sharing_problem = problem});
  };
  const std::string hosts = "the ranks are on several hosts";
  EXPECT_EQ(choose({}, {}).reason, "shared memory (rank 0 has no GPU)");
  EXPECT_EQ(choose({}, {}).host_sums, HostSums::shared_memory);
  EXPECT_EQ(choose({}, hosts).reason, "MPI (rank 0 has no GPU; the ranks are on several hosts)");
  EXPECT_EQ(choose({}, hosts).host_sums, HostSums::shared_memory) << "a group may be on one host";
  EXPECT_EQ(choose({.backend = "shared"}, {}).reason, "shared memory (as asked)");
  EXPECT_EQ(choose({.backend = "mpi"}, {}).reason, "MPI (as asked)");
  EXPECT_EQ(choose({.backend = "mpi"}, {}).host_sums, HostSums::library);
  EXPECT_EQ(choose({.in_tree = true}, {}).host_sums, HostSums::library);
  EXPECT_NE(choose({.in_tree = true}, {}).reason.find("MPI (rank 0 has no GPU; --reproducible"), std::string::npos);
  for (const TransportWish& wish : {TransportWish{.backend = "shared"}, {.backend = "shared", .in_tree = true}}) try {
      choose(wish, wish.in_tree ? "" : hosts);
      FAIL() << "not possible";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Exit::usage);
      EXPECT_NE(std::string(e.what()).find("--backend shared is not possible"), std::string::npos) << e.what();
    }
}

/// What rank `r` adds to element i: sums of these depend on the order of the additions.
float term(int r, Index i) {
  return (r % 2 == 0 ? 1.0F : -1.0F) * static_cast<float>(1 << (5 * r)) / static_cast<float>(i % 97 + 1);
}

float total(int ranks, Index i) {
  float sum = term(0, i);
  for (int r = 1; r < ranks; ++r) sum += term(r, i);
  return sum;
}
std::size_t of(Index i) { return static_cast<std::size_t>(i); }

/// Pieces of all lanes, several times each, of sizes that no number of ranks divides, and sums of fewer floats than
/// ranks.
TEST(SharedSumTest, AddsInTheOrderOfRanks) {
  const int size = ranks().size(), rank = ranks().rank();
  constexpr Index largest = 3'000'001;
  HostDevice device;
  const Made made = make_shared_sums(device, largest);
  EXPECT_EQ(made.warning, "") << "memory is shared";
  Collectives* const sums = made.collectives.get();
  float* const values = device.allocate(largest);
  const Part part{rank, 1, values};
  Index sent = 0;
  for (const Index count : {Index{1}, Index{2}, Index{17}, largest, Index{999'983}}) {
    for (Index i = 0; i < count; ++i) values[i] = term(rank, i);
    sums->finish(sums->submit({values, std::span(&part, 1), count, {}, "sum"}));
    for (Index i = 0; i < count; ++i) {
      ASSERT_EQ(values[i], total(size, i)) << i << " of " << count;
    }
    sent += 2 * (size - 1) * count * 4;
  }
  // Several under way, whose pieces share the lanes.
  constexpr Index each = 700'000;
  std::vector<Ticket> tickets;
  std::vector<Part> parts;
  for (Index k = 0; k < 4; ++k) parts.push_back({rank, 1, values + k * each});
  for (Index i = 0; i < 4 * each; ++i) values[i] = term(rank, i);
  for (Index k = 0; k < 4; ++k) {
    const Index count = each - k;
    tickets.push_back(sums->submit({parts[of(k)].data, std::span(&parts[of(k)], 1), count, {}, "one of four"}));
    sent += 2 * (size - 1) * count * 4;
  }
  for (Index k = 4; k-- > 0;) sums->finish(tickets[of(k)]);
  for (Index k = 0; k < 4; ++k)
    for (Index i = k * each; i < (k + 1) * each - k; ++i) ASSERT_EQ(values[i], total(size, i)) << i;
  std::int64_t all = *sums->sent_bytes();
  ranks().sum(std::span(&all, 1), "bytes of all ranks");
  EXPECT_EQ(all, sent);
}

}  // namespace
}  // namespace convoy
