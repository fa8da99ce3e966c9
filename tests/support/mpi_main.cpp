// SPDX-License-Identifier: Apache-2.0
// main of tests that run under mpirun: ranks other than 0 print failures only, a barrier between tests, the result is
// the maximum over ranks, zero tests run is a failure, all skipped is 77. In tests use EXPECT before a collective,
// ASSERT only after agreement: a rank that leaves early hangs the others until CTest's timeout.
#include "support/mpi_main.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace convoy {
namespace {
Session* session = nullptr;

class Prefixed : public testing::EmptyTestEventListener {
 public:
  explicit Prefixed(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& r) override {
    if (!r.failed()) return;
    std::fprintf(stderr, "[rank %d] %s:%d: %s\n", rank_, r.file_name() ? r.file_name() : "?", r.line_number(),
                 r.message());
  }

 private:
  int rank_;
};

class Barrier : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override { MPI_Barrier(MPI_COMM_WORLD); }
};
}  // namespace

Session& test_session() { return *session; }
}  // namespace convoy

int main(int argc, char** argv) {
  convoy::Session owned(argc, argv);
  convoy::session = &owned;
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new convoy::Prefixed(rank));
  }
  listeners.Append(new convoy::Barrier);
  const auto& unit = *testing::UnitTest::GetInstance();
  int result = RUN_ALL_TESTS() != 0 || unit.test_to_run_count() == 0 ? 1 : 0;
  int skipped = unit.skipped_test_count() == unit.test_to_run_count() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &skipped, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return result == 0 && skipped == 1 ? 77 : result;
}
