// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/nccl_comm.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/errors.hpp"

namespace convoy {
namespace {

/// With communicators that don't block and can be aborted, captured too.
constexpr int oldest_version = NCCL_VERSION(2, 18, 0);

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void require_version() {
  int found = 0;
  if (ncclGetVersion(&found) != ncclSuccess || found < oldest_version) {
    fail(Exit::device, "NCCL is too old ({} was found, {} or newer is needed); load a newer one, or use --backend mpi",
         version_text(found), version_text(oldest_version));
  }
}

}  // namespace

std::string make_nccl_id() {
  require_version();
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
    fail(
        Exit::device,
        "NCCL does not start (ncclGetUniqueId: {}; {}); see NCCL_DEBUG=INFO and NCCL_SOCKET_IFNAME, or use --backend mpi",
        ncclGetErrorString(result), ncclGetLastError(nullptr));
  }
  return {id.internal, sizeof id.internal};
}

NcclComm::NcclComm(const NcclJob& job, const StallPolicy& policy) : policy_(policy) {
  require_version();
  ncclUniqueId id;
  require(job.id.size() == sizeof id.internal, "an NCCL id has a fixed size");
  std::memcpy(id.internal, job.id.data(), sizeof id.internal);
  // NCCL need not register the buffers of captured sums, for which the ranks of a node talk during a capture: one that
  // fails there on one rank would leave the others waiting, and what it gains was not measured.
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  try {
    issued(ncclCommInitRankConfig(&comm_, job.ranks, id, job.rank, &config), "ncclCommInitRankConfig",
           "start-up of NCCL");
  } catch (...) {
    abort();
    throw;
  }
}

ncclResult_t NcclComm::state(const char* what) {
  ncclResult_t state = ncclSuccess;
  if (const ncclResult_t result = ncclCommGetAsyncError(comm_, &state); result != ncclSuccess) {
    fail_nccl(result, "ncclCommGetAsyncError", what);
  }
  return state;
}

void NcclComm::fail_nccl(ncclResult_t result, const char* call, const char* what) {
  const char* const last = ncclGetLastError(comm_);
  fail(
      Exit::communication,
      "{} failed in {} ({}{}{}); see the messages of other ranks, NCCL_DEBUG=INFO says more, --backend mpi does without NCCL",
      call, what, ncclGetErrorString(result), last != nullptr && last[0] != '\0' ? ": " : "",
      last != nullptr ? last : "");
}

void NcclComm::settle(const char* call, const char* what) {
  Deadline deadline(policy_);
  for (ncclResult_t now = state(what); now != ncclSuccess; now = state(what)) {
    if (now != ncclInProgress) fail_nccl(now, call, what);
    deadline.pause(what);
  }
}

void NcclComm::issued(ncclResult_t result, const char* call, const char* what) {
  if (result == ncclInProgress) return settle(call, what);
  if (result != ncclSuccess) fail_nccl(result, call, what);
}

void NcclComm::check(const char* what) {
  const ncclResult_t now = state(what);
  if (now != ncclSuccess && now != ncclInProgress) fail_nccl(now, "NCCL", what);
}

void NcclComm::finalize() {
  constexpr const char* what = "the end of NCCL";
  issued(ncclCommFinalize(comm_), "ncclCommFinalize", what);
  if (const ncclResult_t result = ncclCommDestroy(std::exchange(comm_, nullptr)); result != ncclSuccess)
    fail_nccl(result, "ncclCommDestroy", what);
}

void NcclComm::abort() noexcept {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace convoy
