// SPDX-License-Identifier: Apache-2.0
// Queued work is a graph of nodes. A node runs when the host waits for something that needs it, after those that it
// depends on.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "support/host_cuda/host_cuda.hpp"
#include "support/host_cuda/runner.hpp"

namespace host_cuda {

struct Node {
  std::function<void()> run;  ///< empty: a record or a wait
  std::vector<std::shared_ptr<Node>> after;
  Pool* pool = nullptr;
  Fiber* from = nullptr;
  bool done = false, captured = false;
  long number = -1;  ///< its place in the history
};
using NodeRef = std::shared_ptr<Node>;

struct Capture {
  cudaStream_t origin;
  std::vector<NodeRef> nodes;
  std::vector<std::shared_ptr<void>> kept;  ///< lives as long as graphs that are made of it
};

}  // namespace host_cuda

struct CUstream_st {
  host_cuda::Pool own, inner;  ///< inner: of graphs that run inside a launch in this stream
  host_cuda::NodeRef last, outside;
  std::shared_ptr<host_cuda::Capture> capture;
};
struct CUevent_st {
  using Moment = std::chrono::steady_clock::time_point;
  host_cuda::NodeRef node;
  std::shared_ptr<host_cuda::Capture> capture;
  bool asked = false;
  std::shared_ptr<Moment> passed;  ///< when it ran; null: it takes no time
};
struct CUgraph_st {
  std::vector<host_cuda::NodeRef> nodes;
  host_cuda::NodeRef end;
  std::vector<std::shared_ptr<void>> kept;
};
struct CUgraphExec_st {
  std::shared_ptr<CUgraph_st> graph;
  std::vector<std::shared_ptr<void>> kept;
};

namespace host_cuda {

std::vector<cudaStream_t>& streams();
cudaStream_t make_stream();
void end_stream(cudaStream_t stream);

/// Everything that is queued goes through here. In a stream that is being captured it becomes a node of the graph.
NodeRef add(cudaStream_t stream, std::function<void()> run, NodeRef also = nullptr);
/// Runs `node` and what it needs, nothing else. The order decides among what it needs: the stream first, or the event.
void demand(const NodeRef& node);
/// In place of the settings' order: the first stream that was made comes behind all others, each of which goes ahead as
/// far as its own waits let it. A sum that starts before its parts are final shows here.
bool& others_go_ahead();
void demand_all();

/// The history of what was queued, kept while a wait is to be forgotten: see forgot_needless_wait.
long note_queued(const std::vector<NodeRef>& after, bool is_work);
void note_host_waited(const Node& node);
void note_forgotten_wait(const Node& event, const Node& place);

/// False where the stream isn't captured. Else the object lives until all graphs that are made of the capture are
/// destroyed, as a user object that the graph retains.
bool keep_with_graph(cudaStream_t stream, std::shared_ptr<void> object);
/// How often cudaEventQuery was asked for work that had not run.
long& unready_queries();

bool any_capture();
cudaError_t begin_capture(cudaStream_t stream);
/// The graph, or null where a stream was not joined.
cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph);

/// Counts a call that can fail; not cudaSuccess: it is the one that shall.
cudaError_t called();
/// What cudaGetLastError returns.
cudaError_t note_error(cudaError_t error);
cudaError_t take_last_error();

void free_everything();

/// Device memory exists only while queued work runs: a host that dereferences a device pointer gets SIGSEGV.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

}  // namespace host_cuda
