// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <system_error>

#include "comm/state.hpp"
#include "core/log.hpp"

namespace convoy {
namespace {

/// Of messages between two ranks.
constexpr int swap_tag = 1, text_tag = 2;

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "unknown";
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

}  // namespace

NodePlace find_node_place(const std::vector<std::string>& hosts, int rank) {
  const std::string& host = hosts[static_cast<std::size_t>(rank)];
  return {.rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host)),
          .size = static_cast<int>(std::count(hosts.begin(), hosts.end(), host)),
          .first = static_cast<int>(std::find(hosts.begin(), hosts.end(), host) - hosts.begin())};
}

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

void Communicator::State::send_text(const std::string& text, int to, const char* what) {
  std::uint64_t length = text.size();
  const auto send = [&](const void* from, std::size_t bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, text_tag, comm, &request), "MPI_Isend", what);
    wait(request, what);
  };
  send(&length, sizeof length);
  const auto step = static_cast<std::size_t>(chunk);
  for (std::size_t begin = 0; begin < length; begin += step) send(text.data() + begin, std::min(step, length - begin));
}

std::string Communicator::State::receive_text(int from, const char* what) {
  std::uint64_t length = 0;
  const auto receive = [&](void* to, std::size_t bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, from, text_tag, comm, &request), "MPI_Irecv", what);
    wait(request, what);
  };
  receive(&length, sizeof length);
  std::string text(length, '\0');
  const auto step = static_cast<std::size_t>(chunk);
  for (std::size_t begin = 0; begin < length; begin += step)
    receive(text.data() + begin, std::min(step, length - begin));
  return text;
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

void Communicator::swap(std::span<const std::byte> own, std::span<std::byte> to, int other, const char* what) {
  require(own.size() == to.size(), "sizes of a swap");
  const auto step = static_cast<std::size_t>(state_->chunk);
  for (std::size_t begin = 0; begin < own.size(); begin += step) {
    const int count = static_cast<int>(std::min(step, own.size() - begin));
    MPI_Request received = MPI_REQUEST_NULL, sent = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(to.data() + begin, count, MPI_BYTE, other, swap_tag, state_->comm, &received), "MPI_Irecv",
              what);
    check_mpi(MPI_Isend(own.data() + begin, count, MPI_BYTE, other, swap_tag, state_->comm, &sent), "MPI_Isend", what);
    state_->wait(received, what);
    state_->wait(sent, what);
  }
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

namespace {

std::vector<std::string> split_sized(const std::string& all, int count) {
  std::vector<std::string> texts(static_cast<std::size_t>(count));
  for (std::size_t at = 0; std::string & each : texts) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof size);
    each = all.substr(at + sizeof size, size);
    at += sizeof size + size;
  }
  return texts;
}

}  // namespace

std::string Communicator::gather_sized(const std::string& text, const char* what) {
  // The texts go up a binary tree, in which each rank has those of the ranks behind it: log2(R) messages one after the
  // other.
  std::string all;
  const std::uint64_t own_size = text.size();
  all.append(reinterpret_cast<const char*>(&own_size), sizeof own_size).append(text);
  const int rank = state_->rank, ranks = state_->size;
  for (int span = 1; span < ranks; span *= 2) {
    if ((rank & span) != 0) {
      state_->send_text(all, rank - span, what);
      break;
    }
    if (rank + span < ranks) all += state_->receive_text(rank + span, what);
  }
  return all;
}

std::vector<std::string> Communicator::gather(const std::string& text, const char* what) {
  const std::string all = gather_sized(text, what);
  return rank() == 0 ? split_sized(all, size()) : std::vector<std::string>();
}

std::vector<std::string> Communicator::all_gather(const std::string& text, const char* what) {
  // Down the tree they go together: log2(R) messages more, where a broadcast a rank would take R log2(R).
  std::string all = gather_sized(text, what);
  state_->broadcast_text(all, 0, what);
  return split_sized(all, size());
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find(','));
}

// How ranks come to one mind: about failures of set-up, about what they hold, about stopping.

namespace {

/// Long texts differ in one place: show it with what stands before it.
std::string excerpt(const std::string& text, std::size_t difference) {
  constexpr std::size_t longest = 160, before = 40;
  if (text.size() <= longest) return text;
  const std::size_t begin = difference > before ? difference - before : 0;
  return (begin > 0 ? "..." : "") + text.substr(begin, longest) + (begin + longest < text.size() ? "..." : "");
}

/// Being asked to stop weighs less than any failure: a failure would come back with the resubmitted job.
std::int64_t weight_of(Exit code) {
  if (code == Exit::ok) return 0;
  return code == Exit::stopped ? 1 : static_cast<std::int64_t>(code) + 1;
}
Exit code_of(std::int64_t weight) {
  if (weight == 0) return Exit::ok;
  return weight == 1 ? Exit::stopped : static_cast<Exit>(weight - 1);
}

/// If many ranks have the same problem, the first of them reports it.
void report_each_once(const std::vector<std::string>& problems, int rank) {
  const std::string& own = problems[static_cast<std::size_t>(rank)];
  const auto first = std::find(problems.begin(), problems.end(), own);
  if (own.empty() || first - problems.begin() != rank) return;
  const auto same = std::count(problems.begin(), problems.end(), own) - 1;
  log::report_error(same == 0 ? own : fmt::format("{} (the same on {} other ranks)", own, same));
}

}  // namespace

Exit Communicator::agreed_exit(const char* what, const std::function<void()>& body) {
  Exit own = Exit::ok;
  std::string problem;
  try {
    body();
  } catch (const Error& e) {
    // Without the others there is no agreement either.
    if (e.code() == Exit::communication) throw;
    own = e.code();
    if (own != Exit::stopped) problem = e.what();
  } catch (const std::system_error& e) {
    const bool limit = e.code() == std::errc::resource_unavailable_try_again;  // std::thread's
    own = limit ? Exit::usage : Exit::internal;
    problem = limit ? fmt::format(
                          "{} failed (the system refuses another thread: {}); raise the limits on processes and "
                          "memory (ulimit -u, ulimit -v)",
                          what, e.what())
                    : fmt::format("{} failed ({}); this is a fault of the program", what, e.what());
  } catch (const std::exception& e) {
    own = Exit::internal;
    problem = fmt::format("{} failed ({}); this is a fault of the program", what, e.what());
  }
  std::int64_t worst = weight_of(own);
  try {
    maximum(std::span(&worst, 1), what);
  } catch (const Error&) {
    if (!problem.empty()) log::report_error(problem);  // nobody else will say it
    throw;
  }
  if (worst > weight_of(Exit::stopped)) report_each_once(all_gather(problem, what), rank());
  return code_of(worst);
}

void Communicator::require_equal(const std::string& text, const char* what) {
  std::string first = text;
  state_->broadcast_text(first, 0, what);
  std::int64_t other = text == first ? 0 : size() - rank();  // the maximum is the lowest rank that differs
  maximum(std::span(&other, 1), what);
  if (other == 0) return;
  const int rank_of_other = size() - static_cast<int>(other);
  std::string second = text;
  state_->broadcast_text(second, rank_of_other, what);
  const auto at = std::mismatch(first.begin(), first.end(), second.begin(), second.end()).first - first.begin();
  const auto difference = static_cast<std::size_t>(at);
  fail(Exit::usage, "ranks disagree on {} (rank 0 on {}: '{}'; rank {} on {}: '{}'); start all ranks alike", what,
       hosts().front(), excerpt(first, difference), rank_of_other, hosts()[static_cast<std::size_t>(rank_of_other)],
       excerpt(second, difference));
}

Votes Communicator::agree_later(const Votes& votes) {
  constexpr const char* what = "agreement on stopping";
  PendingVote& pending = *state_->vote;
  Votes agreed{};
  if (pending.started) {
    state_->wait(pending.request, what);
    agreed = pending.agreed;
  }
  pending.sent = votes;
  pending.started = true;
  check_mpi(MPI_Iallreduce(pending.sent.data(), pending.agreed.data(), static_cast<int>(votes.size()), MPI_INT64_T,
                           MPI_MAX, state_->comm, &pending.request),
            "MPI_Iallreduce", what);
  return agreed;
}

std::unique_ptr<Communicator> Communicator::split(int number, const StallLimits& limits) {
  const State& whole = *state_;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(whole.comm, number < 0 ? MPI_UNDEFINED : number, whole.rank, &comm), "MPI_Comm_split",
            "a part of the ranks");
  if (number < 0) return nullptr;
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "a part of the ranks");
  auto state = std::make_unique<State>();
  state->comm = comm;
  check_mpi(MPI_Comm_rank(comm, &state->rank), "MPI_Comm_rank", "a part of the ranks");
  check_mpi(MPI_Comm_size(comm, &state->size), "MPI_Comm_size", "a part of the ranks");
  state->chunk = whole.chunk;
  state->policy = whole.policy;
  state->policy.limits = limits;
  state->vote = std::make_unique<PendingVote>();
  return std::unique_ptr<Communicator>(new Communicator(std::move(state)));
}

void Communicator::take_hosts(std::vector<std::string> hosts) {
  State& own = *state_;
  own.hosts = std::move(hosts);
  const NodePlace place = find_node_place(own.hosts, own.rank);
  own.node_rank = place.rank;
  own.node_size = place.size;
  own.node_first = place.first;
}

std::unique_ptr<Communicator> Communicator::first_ranks(int count, const StallLimits& limits) {
  const State& whole = *state_;
  require(count >= 1 && count <= whole.size, "number of ranks of a part");
  auto part = split(whole.rank < count ? 0 : -1, limits);
  if (part) part->take_hosts({whole.hosts.begin(), whole.hosts.begin() + count});
  return part;
}

std::unique_ptr<Communicator> Communicator::part(int number, const StallLimits& limits) {
  require(number >= 0, "number of a part of the ranks");
  auto part = split(number, limits);
  part->take_hosts(part->all_gather(host(), "names of hosts"));
  return part;
}

}  // namespace convoy
