// SPDX-License-Identifier: Apache-2.0
#include "comm/checked.hpp"
#include "comm/exchange.hpp"

namespace convoy {
namespace {

class AllReduce final : public Exchange {
 public:
  AllReduce(MPI_Comm parent, std::size_t lanes)
      : comm_(duplicate(parent, "start-up")), requests_(lanes, MPI_REQUEST_NULL) {}

  void start(std::size_t lane, float* out, std::span<const float* const>, Index count, const char* what) override {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, out, static_cast<int>(count), MPI_FLOAT, MPI_SUM, comm_, &requests_[lane]),
              "MPI_Iallreduce", what);
  }
  bool advance(std::size_t lane, const char* what) override {
    int arrived = 0;
    check_mpi(MPI_Test(&requests_[lane], &arrived, MPI_STATUS_IGNORE), "MPI_Test", what);
    return arrived != 0;
  }

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_all_reduce(MPI_Comm parent, std::size_t lanes) {
  return std::make_unique<AllReduce>(parent, lanes);
}

}  // namespace convoy
