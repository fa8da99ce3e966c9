// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nccl.h>

#include <string>

#include "comm/nccl/module.hpp"

namespace convoy {

/// Names a new communicator: rank 0 makes it, all ranks are given it. Throws Error(device).
std::string make_nccl_id();

/// A communicator of NCCL whose calls return at once and whose waits are the host's, under the deadline.
class NcclComm {
 public:
  /// Collective. Throws Error(communication), past the deadline too.
  NcclComm(const NcclJob& job, const StallPolicy& policy);
  /// Aborts unless finalize() was called: everything that was awaited is done then, and all else would wait for other
  /// ranks.
  ~NcclComm() { abort(); }
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const { return comm_; }
  /// Collective. Ends the communicator with its peers. Throws Error(communication), past the deadline too.
  void finalize();
  /// After every call that queues work: returns once the work lies in the stream.
  void issued(ncclResult_t result, const char* call, const char* what);
  /// Throws Error(communication) where the communicator has failed. Cheap, never waits.
  void check(const char* what);
  /// Ends what is under way, so that streams and memory can be freed. Waits for ever where a captured graph that holds
  /// work of this communicator is still kept: see CommunicationQueue::forget_graphs.
  void abort() noexcept;

 private:
  ncclResult_t state(const char* what);
  [[noreturn]] void fail_nccl(ncclResult_t result, const char* call, const char* what);
  void settle(const char* call, const char* what);

  const StallPolicy& policy_;
  ncclComm_t comm_ = nullptr;
};

/// Calls between its construction and end() become one operation.
class NcclGroup {
 public:
  NcclGroup(NcclComm& comm, const char* what) : comm_(comm), what_(what) { add(ncclGroupStart(), "ncclGroupStart"); }
  /// Where an exception is in flight the group ends too, whatever comes of it: as long as it is open an abort of the
  /// communicator would only be noted.
  ~NcclGroup() {
    if (!ended_) ncclGroupEnd();
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void add(ncclResult_t result, const char* call) {
    if (result != ncclInProgress) comm_.issued(result, call, what_);
  }
  void end() {
    ended_ = true;
    comm_.issued(ncclGroupEnd(), "ncclGroupEnd", what_);
  }

 private:
  NcclComm& comm_;
  const char* what_;
  bool ended_ = false;
};

}  // namespace convoy
