// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>

#include "comm/checked.hpp"
#include "comm/state.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

}  // namespace

void Communicator::State::wait(MPI_Request& request, const char* what) {
  Deadline deadline(policy);
  for (int arrived = 0;;) {
    check_mpi(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test", what);
    if (arrived) return;
    deadline.pause(what);
  }
}

void Communicator::State::all_reduce(void* values, std::size_t count, std::size_t bytes_each, MPI_Datatype type,
                                     MPI_Op op, const char* what) {
  const auto step = static_cast<std::size_t>(chunk);
  for (std::size_t begin = 0; begin < count; begin += step) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, static_cast<std::byte*>(values) + begin * bytes_each,
                             static_cast<int>(std::min(step, count - begin)), type, op, comm, &request),
              "MPI_Iallreduce", what);
    wait(request, what);
  }
}

void Communicator::State::broadcast(std::byte* bytes, std::size_t count, int root, const char* what) {
  const auto step = static_cast<std::size_t>(chunk);
  for (std::size_t begin = 0; begin < count; begin += step) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Ibcast(bytes + begin, static_cast<int>(std::min(step, count - begin)), MPI_BYTE, root, comm, &request),
        "MPI_Ibcast", what);
    wait(request, what);
  }
}

void Communicator::State::broadcast_text(std::string& text, int root, const char* what) {
  std::int64_t count = static_cast<std::int64_t>(text.size());
  broadcast(reinterpret_cast<std::byte*>(&count), sizeof count, root, what);
  text.resize(static_cast<std::size_t>(count));
  broadcast(reinterpret_cast<std::byte*>(text.data()), text.size(), root, what);
}

Communicator::Communicator(Session&, const StallLimits& limits, Index chunk, Clock& clock)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  require(chunk > 0 && chunk <= INT_MAX, "chunk limit of a communicator");
  s.chunk = chunk;
  s.policy.limits = limits;
  s.policy.clock = &clock;
  s.vote = std::make_unique<PendingVote>();
  s.comm = duplicate(MPI_COMM_WORLD, "start-up");
  check_mpi(MPI_Comm_rank(s.comm, &s.rank), "MPI_Comm_rank", "start-up");
  check_mpi(MPI_Comm_size(s.comm, &s.size), "MPI_Comm_size", "start-up");
  s.policy.rank = s.rank;
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(s.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type",
            "start-up");
  check_mpi(MPI_Comm_rank(node, &s.node_rank), "MPI_Comm_rank", "start-up");
  check_mpi(MPI_Comm_size(node, &s.node_size), "MPI_Comm_size", "start-up");
  s.node_first = s.rank;
  check_mpi(MPI_Bcast(&s.node_first, 1, MPI_INT, 0, node), "MPI_Bcast", "start-up");
  check_mpi(MPI_Comm_free(&node), "MPI_Comm_free", "start-up");
  s.hosts = all_gather(host_name(), "names of hosts");
}

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}

Communicator::~Communicator() {
  // MPI_Finalize may still finish the agreement and write its result.
  if (state_->vote->request != MPI_REQUEST_NULL) static_cast<void>(state_->vote.release());
}

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
int Communicator::node_rank() const { return state_->node_rank; }
int Communicator::node_size() const { return state_->node_size; }
int Communicator::node_first() const { return state_->node_first; }
const std::string& Communicator::host() const { return state_->hosts[static_cast<std::size_t>(state_->rank)]; }
const std::vector<std::string>& Communicator::hosts() const { return state_->hosts; }

void Communicator::explain_stalls(std::function<StallReport()> who_is_missing) {
  state_->policy.explain = std::move(who_is_missing);
}

void Communicator::barrier(const char* what) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(state_->comm, &request), "MPI_Ibarrier", what);
  state_->wait(request, what);
}

void Communicator::broadcast(std::string& text, const char* what) { state_->broadcast_text(text, 0, what); }

void Communicator::broadcast(std::span<std::byte> bytes, int root, const char* what) {
  state_->broadcast(bytes.data(), bytes.size(), root, what);
}

void Communicator::sum(std::span<double> values, const char* what) {
  state_->all_reduce(values.data(), values.size(), sizeof(double), MPI_DOUBLE, MPI_SUM, what);
}
void Communicator::sum(std::span<std::int64_t> values, const char* what) {
  state_->all_reduce(values.data(), values.size(), sizeof(std::int64_t), MPI_INT64_T, MPI_SUM, what);
}
void Communicator::maximum(std::span<std::int64_t> values, const char* what) {
  state_->all_reduce(values.data(), values.size(), sizeof(std::int64_t), MPI_INT64_T, MPI_MAX, what);
}
void Communicator::maximum(std::span<double> values, const char* what) {
  state_->all_reduce(values.data(), values.size(), sizeof(double), MPI_DOUBLE, MPI_MAX, what);
}
void Communicator::minimum(std::span<double> values, const char* what) {
  state_->all_reduce(values.data(), values.size(), sizeof(double), MPI_DOUBLE, MPI_MIN, what);
}

std::vector<std::string> Communicator::all_gather(const std::string& text, const char* what) {
  const auto ranks = static_cast<std::size_t>(state_->size), own = static_cast<std::size_t>(state_->rank);
  std::vector<std::int64_t> sizes(ranks, 0);
  sizes[own] = static_cast<std::int64_t>(text.size());
  sum(sizes, what);
  std::vector<std::string> texts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) texts[r].resize(static_cast<std::size_t>(sizes[r]));
  texts[own] = text;
  // One broadcast a rank: no 2 GiB border, and these are texts of set-up and reports, not of steps.
  for (std::size_t r = 0; r < ranks; ++r)
    state_->broadcast(reinterpret_cast<std::byte*>(texts[r].data()), texts[r].size(), static_cast<int>(r), what);
  return texts;
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find(','));
}

}  // namespace convoy
