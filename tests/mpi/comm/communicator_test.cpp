// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "comm/agreed_error.hpp"
#include "core/replicas.hpp"
#include "support/mpi_main.hpp"

namespace convoy {
namespace {

struct CommunicatorTest : testing::Test {
  Communicator comm{test_session(), {.warn_seconds = 5, .abort_seconds = 8}, 3};
  int rank = comm.rank(), size = comm.size();
  bool last() const { return rank == size - 1; }
};

TEST_F(CommunicatorTest, KnowsWhereItRuns) {
  EXPECT_EQ(std::to_string(size), std::getenv("OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(std::to_string(rank), std::getenv("OMPI_COMM_WORLD_RANK"));
  EXPECT_EQ(comm.node_rank(), rank);
  EXPECT_EQ(comm.node_size(), size);
  EXPECT_EQ(comm.node_first(), 0);
  EXPECT_EQ(comm.hosts(), std::vector<std::string>(static_cast<std::size_t>(size), comm.host()));
  EXPECT_FALSE(comm.host().empty());
}

TEST_F(CommunicatorTest, SumsMaximaAndMinimaInChunks) {
  for (const std::size_t count : {0, 1, 2, 3, 4, 7}) {
    std::vector<std::int64_t> whole(count), largest(count);
    std::vector<double> real(count), highest(count), smallest(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto n = static_cast<std::int64_t>(i);
      whole[i] = (std::int64_t{1} << 40) + 10 * n + rank;
      real[i] = static_cast<double>(n) + 0.25 * rank;
      largest[i] = n % 2 == 0 ? rank : -rank;
      highest[i] = smallest[i] = static_cast<double>(rank - n);
    }
    comm.sum(whole, "sum of integers");
    comm.sum(real, "sum");
    comm.maximum(largest, "maximum");
    comm.maximum(highest, "maximum");
    comm.minimum(smallest, "minimum");
    for (std::size_t i = 0; i < count; ++i) {
      const auto n = static_cast<std::int64_t>(i);
      const std::int64_t ranks = size * (size - 1) / 2;
      EXPECT_EQ(whole[i], size * ((std::int64_t{1} << 40) + 10 * n) + ranks);
      EXPECT_EQ(real[i], size * static_cast<double>(n) + 0.25 * static_cast<double>(ranks));
      EXPECT_EQ(largest[i], n % 2 == 0 ? size - 1 : 0);
      EXPECT_EQ(highest[i], static_cast<double>(size - 1 - n));
      EXPECT_EQ(smallest[i], static_cast<double>(-n));
    }
  }
}

TEST_F(CommunicatorTest, BroadcastsTextsAndBytesFromAnyRank) {
  std::string text = rank == 0 ? "a text longer than a chunk" : "mine";
  comm.broadcast(text, "text");
  EXPECT_EQ(text, "a text longer than a chunk");
  text = rank == 0 ? "" : "not empty";
  comm.broadcast(text, "empty text");
  EXPECT_EQ(text, "");
  for (int root = 0; root < size; ++root) {
    std::array<int, 5> values{};
    if (rank == root) values = {1, 2, 3, 4, root};
    comm.broadcast(std::as_writable_bytes(std::span(values)), root, "bytes");
    EXPECT_EQ(values, (std::array<int, 5>{1, 2, 3, 4, root}));
  }
}

TEST_F(CommunicatorTest, GathersOneTextARank) {
  const std::string own = rank == 1 ? "" : "text of rank " + std::to_string(rank);
  const auto texts = comm.all_gather(own, "texts");
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(size));
  EXPECT_EQ(comm.gather(own, "texts"), rank == 0 ? texts : std::vector<std::string>());
  for (int r = 0; r < static_cast<int>(texts.size()); ++r)
    EXPECT_EQ(texts[static_cast<std::size_t>(r)], r == 1 ? "" : "text of rank " + std::to_string(r));
}

TEST_F(CommunicatorTest, AgreesOnTheWorstCodeOfSetUp) {
  EXPECT_EQ(comm.agreed_exit("set-up that works", [] {}), Exit::ok);
  testing::internal::CaptureStderr();
  const Exit one = comm.agreed_exit("opening files", [&] {
    if (last()) fail(Exit::data, "cannot open 'part.h5'");
  });
  const Exit both = comm.agreed_exit("set-up", [&] {
    if (rank == 0) fail(Exit::usage, "bad value");
    if (last()) throw std::runtime_error("library");
  });
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(one, Exit::data);
  EXPECT_EQ(both, Exit::usage);
  EXPECT_EQ(printed.find("cannot open 'part.h5'") != std::string::npos, last());
  EXPECT_EQ(printed.find("bad value") != std::string::npos, rank == 0);
  EXPECT_EQ(printed.find("set-up failed (library)") != std::string::npos, last() && size > 1);
}

TEST_F(CommunicatorTest, DecidesAlikeUnlessTheOthersAreMissing) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(run_alike(comm, [] { fail(Exit::usage, "bad value"); }), AgreedError);
  // Nobody knows what the others do: the rank must not wait for them at the end.
  EXPECT_THROW(run_alike(comm, [] { fail(Exit::communication, "no answer"); }), Error);
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed.find("bad value") != std::string::npos, rank == 0);
  EXPECT_EQ(printed.find("no answer"), std::string::npos);
}

TEST_F(CommunicatorTest, NamesTheFirstRankThatDiffers) {
  comm.require_equal("the same", "configuration");
  comm.require_equal("", "nothing");
  if (size == 1) return;
  std::string text(1000, 'x');
  text += rank == 0 ? "steps = 5" : "steps = " + std::to_string(6 + rank);
  std::string message;
  Exit code = Exit::ok;
  try {
    comm.require_equal(text, "steps per epoch");
  } catch (const Error& e) {
    message = e.what();
    code = e.code();
  }
  EXPECT_EQ(code, Exit::usage);
  for (const char* part : {"steps per epoch", "rank 0 on", "steps = 5'", "rank 1 on", "steps = 7'"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_LT(message.size(), 600U);
  // Only the length differs.
  EXPECT_THROW(comm.require_equal(last() ? "ab" : "a", "length"), Error);
}

TEST_F(CommunicatorTest, AgreesOneStepLater) {
  EXPECT_EQ(comm.agree_later({last() ? 3 : 0, rank}), Votes{});
  EXPECT_EQ(comm.agree_later({rank == 0 ? 1 : 0, 0, -rank}), (Votes{3, size - 1}));
  double other = 1;  // other messages may pass while the agreement is under way
  comm.sum(std::span(&other, 1), "sum");
  EXPECT_EQ(other, size);
  EXPECT_EQ(comm.agree_later({}), Votes{1});
  EXPECT_EQ(comm.agree_later({5}), Votes{});  // destroyed with an agreement under way
}

TEST(ReplicasTest, DealsContiguousRunsToAllRanks) {
  for (int replicas = 1; replicas <= 9; ++replicas)
    for (int ranks = 1; ranks <= 11; ++ranks) {
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ReplicaRun run = deal_replicas(replicas, ranks, rank);
        EXPECT_EQ(run.first, next);
        EXPECT_TRUE(run.count == replicas / ranks || run.count == replicas / ranks + 1);
        for (int r = run.first; r < run.first + run.count; ++r) EXPECT_EQ(rank_of_replica(replicas, ranks, r), rank);
        next += run.count;
      }
      EXPECT_EQ(next, replicas);
    }
}

TEST_F(CommunicatorTest, TwoRanksSwapBytes) {
  const int own = rank, other = own ^ 1;
  if (other < size) {
    const std::vector<std::byte> sent(10, static_cast<std::byte>(7 + own));
    std::vector<std::byte> received(sent.size());
    comm.swap(sent, received, other, "swap");
    EXPECT_EQ(received, std::vector<std::byte>(sent.size(), static_cast<std::byte>(7 + other)));
  }
  comm.barrier("end of the swap");
}

TEST(NodePlaces, AreFoundByTheNamesOfHosts) {
  const std::vector<std::string> hosts{"a", "b", "b", "a", "b", "c"};
  EXPECT_EQ(find_node_place(hosts, 0), (NodePlace{.rank = 0, .size = 2, .first = 0}));
  EXPECT_EQ(find_node_place(hosts, 3), (NodePlace{.rank = 1, .size = 2, .first = 0}));
  EXPECT_EQ(find_node_place(hosts, 2), (NodePlace{.rank = 1, .size = 3, .first = 1}));
  EXPECT_EQ(find_node_place(hosts, 4), (NodePlace{.rank = 2, .size = 3, .first = 1}));
  EXPECT_EQ(find_node_place(hosts, 5), (NodePlace{.rank = 0, .size = 1, .first = 5}));
}

TEST_F(CommunicatorTest, PartsAreJobsOfTheirOwn) {
  const int number = size == 1 ? 0 : rank % 2;
  const auto part = comm.part(number, {.abort_seconds = 20});
  EXPECT_EQ(part->size(), (comm.size() + 1 - number) / 2);
  EXPECT_EQ(part->rank(), comm.rank() / 2);
  EXPECT_EQ(part->hosts().size(), static_cast<std::size_t>(part->size()));
  EXPECT_EQ(part->host(), comm.host());
  EXPECT_EQ(part->node_rank(), part->rank());
  EXPECT_EQ(part->node_size(), part->size());
  EXPECT_EQ(part->node_first(), 0);
  std::vector<double> sum{static_cast<double>(comm.rank())};
  part->sum(sum, "sum of a part");
  double expected = 0;
  for (int member = number; member < size; member += 2) expected += member;
  EXPECT_EQ(sum.front(), expected);
}

}  // namespace
}  // namespace convoy
