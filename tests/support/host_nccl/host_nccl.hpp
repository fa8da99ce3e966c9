// SPDX-License-Identifier: Apache-2.0
// A stand-in for NCCL, linked in its place: keeps its rules for communicators that don't block, records what is called,
// moves floats between the ranks of an MPI job, and fails where it is told to.
#pragma once
#include <nccl.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace host_nccl {

struct Settings {
  /// Queues work in a stream; work that returns false is asked again.
  std::function<void(cudaStream_t, std::function<bool()>)> enqueue;
  /// Ties an object to the graph that the stream's work becomes part of; false where it isn't captured.
  std::function<bool(cudaStream_t, std::shared_ptr<void>)> keep_with_graph;
  int version = NCCL_VERSION_CODE;
  int polls = 2;           ///< of ncclCommGetAsyncError before a call is no longer in progress
  long failing_call = -1;  ///< this call (of calls()) makes the communicator fail with ncclRemoteError; within a group
                           ///< it returns it
  ncclResult_t id = ncclSuccess;
};
Settings& settings();

/// What was called, `ncclAllReduce 100` and the like, in order; a group's calls stand between its begin and end.
std::vector<std::string>& calls();
/// Of any communicator, in graphs that are still kept. NCCL would wait for their end in ncclCommAbort; this aborts.
int captured_operations();
/// Communicators that were made, and neither destroyed nor aborted.
int communicators();

}  // namespace host_nccl
