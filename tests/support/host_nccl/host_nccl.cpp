// SPDX-License-Identifier: Apache-2.0
#include "support/host_nccl/host_nccl.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/wire.hpp"

namespace host_nccl {
namespace {

enum class Kind { all_reduce, send, receive, broadcast };

struct Transfer {
  Kind kind;
  const void* from;
  void* to;
  int count;
  int peer;        ///< of a broadcast its root
  int bytes_each;  ///< 2 or 4
};

int live_communicators = 0, live_captured = 0;

}  // namespace

Settings& settings() {
  static Settings instance;
  return instance;
}
std::vector<std::string>& calls() {
  static std::vector<std::string> instance;
  return instance;
}
int captured_operations() { return live_captured; }
int communicators() { return live_communicators; }

}  // namespace host_nccl

using namespace host_nccl;

struct ncclComm {
  int rank, ranks, tag;
  ncclResult_t state = ncclInProgress;
  int polls_left;
  bool aborted = false, finalized = false;
  int captured = 0;  ///< operations in graphs
  std::vector<MPI_Request> handshake;
  /// A call that has not reached its stream yet.
  std::function<void()> queued;
};

namespace {

/// Kept: work in streams outlives the communicator that it belongs to.
std::vector<std::unique_ptr<ncclComm>> all;

struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Transfer> transfers;
} group;

/// One operation in a stream.
struct Operation {
  ncclComm* comm;
  int tag;
  std::vector<Transfer> transfers;
  std::vector<MPI_Request> requests;
  std::vector<std::vector<std::byte>> received;  ///< of sums, from each other rank
  bool started = false;

  void send(const Transfer& t, int to) {
    requests.emplace_back();
    MPI_Isend(t.from, t.count * t.bytes_each, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests.back());
  }
  void receive(void* at, const Transfer& t, int from) {
    requests.emplace_back();
    MPI_Irecv(at, t.count * t.bytes_each, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests.back());
  }
  void start() {
    for (Transfer& t : transfers) {
      for (int r = 0; r < comm->ranks && t.kind == Kind::all_reduce; ++r) {
        if (r == comm->rank) continue;
        received.emplace_back(static_cast<std::size_t>(t.count * t.bytes_each));
        send(t, r);
        receive(received.back().data(), t, r);
      }
      for (int r = 0; r < comm->ranks && t.kind == Kind::broadcast && t.peer == comm->rank; ++r)
        if (r != comm->rank) send(t, r);
      if (t.kind == Kind::broadcast && t.peer != comm->rank) receive(t.to, t, t.peer);
      if (t.kind == Kind::send) send(t, t.peer);
      if (t.kind == Kind::receive) receive(t.to, t, t.peer);
    }
    started = true;
  }
  bool advance() {
    if (comm->aborted || comm->state == ncclRemoteError) {
      for (MPI_Request& request : requests)
        if (request != MPI_REQUEST_NULL) MPI_Cancel(&request), MPI_Request_free(&request);
      return comm->aborted;
    }
    if (!started) start();
    int arrived = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &arrived, MPI_STATUSES_IGNORE);
    if (arrived == 0) return false;
    std::size_t next = 0;
    for (const Transfer& t : transfers) {
      if (t.kind != Kind::all_reduce) continue;
      // In the order of ranks, so that all have the same bits. 16 bits are rounded after every addition.
      const auto count = static_cast<std::size_t>(t.count);
      std::vector<float> sum(count, 0.0F), term(count);
      std::vector<std::uint16_t> halves(count);
      for (int r = 0; r < comm->ranks; ++r) {
        const void* const from = r == comm->rank ? t.from : received[next++].data();
        if (t.bytes_each == 4) std::memcpy(term.data(), from, count * 4);
        if (t.bytes_each == 2) {
          std::memcpy(halves.data(), from, count * 2);
          convoy::widen(term.data(), halves.data(), t.count, convoy::Wire::bf16);
        }
        for (std::size_t i = 0; i < count; ++i) sum[i] += term[i];
        if (t.bytes_each == 2) convoy::round_to(sum.data(), t.count, convoy::Wire::bf16);
      }
      convoy::narrow(halves.data(), sum.data(), t.count, convoy::Wire::bf16);
      std::memcpy(t.to, t.bytes_each == 4 ? static_cast<const void*>(sum.data()) : halves.data(),
                  count * static_cast<std::size_t>(t.bytes_each));
    }
    started = false;  // a graph runs it again
    requests.clear();
    received.clear();
    return true;
  }
};

int bytes_each(ncclDataType_t type) {
  if (type == ncclFloat) return 4;
  if (type == ncclHalf || type == ncclBfloat16) return 2;
  std::fprintf(stderr, "a type that the stand-in for NCCL doesn't know\n");
  std::abort();
}

bool is_failing_call() { return static_cast<long>(calls().size()) - 1 == settings().failing_call; }

ncclResult_t put_in_progress(ncclComm* comm, std::function<void()> queued) {
  if (comm->state != ncclSuccess) return ncclInvalidUsage;  // not before the call before it is settled
  const bool fails = is_failing_call();
  comm->state = ncclInProgress;
  comm->polls_left = settings().polls;
  comm->queued = [=, queued = std::move(queued)] {
    if (fails) comm->state = ncclRemoteError;
    queued();
  };
  return ncclInProgress;
}

ncclResult_t submit(ncclComm* comm, cudaStream_t stream, std::vector<Transfer> transfers) {
  auto operation = std::make_shared<Operation>();
  operation->comm = comm;
  // As NCCL, which has no tags: messages between two ranks match by their order in the streams.
  operation->tag = comm->tag + 1;
  operation->transfers = std::move(transfers);
  if (settings().keep_with_graph) {
    const auto count = [comm](int change) { comm->captured += change, live_captured += change; };
    count(1);
    settings().keep_with_graph(stream, std::shared_ptr<void>(comm, [count](void*) { count(-1); }));
  }
  return put_in_progress(comm, [=] { settings().enqueue(stream, [operation] { return operation->advance(); }); });
}

ncclResult_t call(const char* name, ncclComm* comm, cudaStream_t stream, const Transfer& transfer) {
  const std::string peer = transfer.kind == Kind::all_reduce ? "" : " peer " + std::to_string(transfer.peer);
  const char* const halves = transfer.bytes_each == 2 ? " of 16 bits" : "";
  calls().push_back(std::string(name) + " " + std::to_string(transfer.count) + halves + peer);
  if (group.depth == 0) return submit(comm, stream, {transfer});
  if (is_failing_call()) return ncclRemoteError;
  group.comm = comm;
  group.stream = stream;
  group.transfers.push_back(transfer);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = settings().version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int made = 0;
  std::memset(id, 0, sizeof *id);
  const int number = ++made;
  std::memcpy(id->internal, &number, sizeof number);
  return settings().id;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  calls().push_back("ncclCommInitRankConfig " + std::to_string(ranks));
  if (config->blocking != 0) return ncclInvalidArgument;
  int number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  all.push_back(std::make_unique<ncclComm>());
  *comm = all.back().get();
  **comm = {.rank = rank, .ranks = ranks, .tag = 100'000 * number, .polls_left = settings().polls};
  ++live_communicators;
  static char byte = 0;
  (*comm)->handshake.resize(2 * static_cast<std::size_t>(ranks), MPI_REQUEST_NULL);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    MPI_Isend(&byte, 1, MPI_CHAR, r, (*comm)->tag, MPI_COMM_WORLD,
              &(*comm)->handshake[2 * static_cast<std::size_t>(r)]);
    MPI_Irecv(&byte, 1, MPI_CHAR, r, (*comm)->tag, MPI_COMM_WORLD,
              &(*comm)->handshake[2 * static_cast<std::size_t>(r) + 1]);
  }
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm == nullptr || comm->aborted) return ncclInvalidArgument;
  int met = 0;
  MPI_Testall(static_cast<int>(comm->handshake.size()), comm->handshake.data(), &met, MPI_STATUSES_IGNORE);
  if (met != 0 && comm->state == ncclInProgress && comm->polls_left-- <= 0) {
    comm->state = ncclSuccess;
    if (comm->queued) std::exchange(comm->queued, nullptr)();
  }
  *state = comm->state;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  calls().emplace_back("ncclCommFinalize");
  if (comm->aborted || comm->finalized) return ncclInvalidArgument;
  if (comm->captured != 0) {
    std::fprintf(stderr, "host_nccl: ncclCommFinalize would wait for %d captured operations for ever\n",
                 comm->captured);
    std::abort();
  }
  comm->finalized = true;
  return put_in_progress(comm, [] {});
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  calls().emplace_back("ncclCommDestroy");
  if (!comm->finalized || comm->state != ncclSuccess) {
    std::fprintf(stderr, "host_nccl: ncclCommDestroy of a communicator that is not finalized\n");
    std::abort();
  }
  comm->aborted = true;
  --live_communicators;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  calls().emplace_back("ncclCommAbort");
  if (comm->aborted) return ncclInvalidArgument;
  if (group.depth > 0) {
    std::fprintf(stderr, "host_nccl: ncclCommAbort within a group\n");
    std::abort();
  }
  if (comm->captured != 0) {
    std::fprintf(stderr, "host_nccl: ncclCommAbort would wait for %d captured operations for ever\n", comm->captured);
    std::abort();
  }
  for (MPI_Request& request : comm->handshake)
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request), MPI_Request_free(&request);
  comm->aborted = true;
  --live_communicators;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "an error of the stand-in";
  }
}
const char* ncclGetLastError(ncclComm_t comm) {
  return comm != nullptr && comm->state == ncclRemoteError ? "socket closed by peer" : "";
}

ncclResult_t ncclGroupStart() {
  calls().emplace_back("ncclGroupStart");
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  calls().emplace_back("ncclGroupEnd");
  if (--group.depth > 0 || group.transfers.empty()) return ncclSuccess;
  return submit(group.comm, group.stream, std::exchange(group.transfers, {}));
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  if ((type != ncclFloat && type != ncclBfloat16) || op != ncclSum) return ncclInvalidArgument;
  return call("ncclAllReduce", comm, stream,
              {Kind::all_reduce, from, to, static_cast<int>(count), 0, bytes_each(type)});
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return call("ncclBroadcast", comm, stream,
              {Kind::broadcast, from, to, static_cast<int>(count), root, bytes_each(type)});
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclSend", comm, stream, {Kind::send, from, nullptr, static_cast<int>(count), peer, bytes_each(type)});
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclRecv", comm, stream, {Kind::receive, nullptr, to, static_cast<int>(count), peer, bytes_each(type)});
}
}
