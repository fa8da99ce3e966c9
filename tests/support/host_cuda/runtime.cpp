// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that the module calls; what isn't here does not link. Not modelled: launching one
// graph in two streams at once, stream-ordered allocation, host functions, peers.
#include <chrono>
#include <utility>

#include "support/host_cuda/streams.hpp"

using namespace host_cuda;

namespace {
int current_device = 0;

cudaError_t count_wait() {
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  ++counts().syncs;
  return cudaSuccess;
}
}  // namespace

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority < -5 || priority > 0) fail("a stream of a priority that there is not");
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Inside inside;
  if (flags != cudaStreamNonBlocking) fail("a stream that waits for the default stream");
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  *stream = make_stream();
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Inside inside;
  end_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Inside inside;
  if (const cudaError_t error = count_wait(); error != cudaSuccess) return error;
  demand(stream->last);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Inside inside;
  if (const cudaError_t error = count_wait(); error != cudaSuccess) return error;
  demand_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Inside inside;
  if (flags != cudaEventDisableTiming && flags != cudaEventDefault) fail("an event of a kind that is not modelled");
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  *event = new CUevent_st;
  if (flags == cudaEventDefault) (*event)->passed = std::make_shared<CUevent_st::Moment>();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Inside inside;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Inside inside;
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (event->passed && stream->capture) fail("an event that takes the time in a captured graph");
  event->node = event->passed ? add(stream, [passed = event->passed] { *passed = std::chrono::steady_clock::now(); })
                              : add(stream, nullptr);
  event->capture = stream->capture;
  event->asked = false;
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Inside inside;
  if (!begin->passed || !end->passed || !begin->node || !end->node)
    fail("the time between events that don't take it, or that were never recorded");
  if (!begin->node->done || !end->node->done) return note_error(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*end->passed - *begin->passed).count();
  return cudaSuccess;
}

/// Not ready when first asked; the second call makes it so.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Inside inside;
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  if (event->capture) return note_error(cudaErrorCapturedEvent);
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (event->node && !event->node->done) ++unready_queries();
  if (event->node && !event->node->done && !std::exchange(event->asked, true)) return cudaErrorNotReady;
  demand(event->node);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  const Inside inside;
  if (flags != 0) fail("cudaStreamWaitEvent: external waits are not modelled");
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (!event->node) return cudaSuccess;  // never recorded: no wait
  if (counts().waits++ == settings().drop_wait) {
    if (stream->capture == event->capture) note_forgotten_wait(*event->node, *add(stream, nullptr));
    return cudaSuccess;
  }
  const bool live = event->capture && event->capture->origin->capture == event->capture;
  if (live && !stream->capture) {  // joins the capture
    stream->capture = event->capture;
    stream->outside = std::exchange(stream->last, nullptr);
  }
  if (stream->capture != event->capture) return note_error(cudaErrorStreamCaptureIsolation);
  add(stream, nullptr, event->node);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Inside inside;
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  return begin_capture(stream);
}

/// Where it fails the capture has ended all the same.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Inside inside;
  const cudaError_t error = called(), ended = end_capture(stream, graph);
  if (error == cudaSuccess || ended != cudaSuccess) return ended;
  delete std::exchange(*graph, nullptr);
  return error;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  const Inside inside;
  if (flags != cudaGraphInstantiateFlagUseNodePriority) fail("a graph that forgets the priorities of its streams");
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  *exec = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph), graph->kept};
  (*exec)->graph->kept.clear();  // launches may outlive exec
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Inside inside;
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Inside inside;
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const Inside inside;
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  if (any_capture()) return note_error(cudaErrorStreamCaptureUnsupported);
  ++counts().graph_launches;
  return enqueue(stream, [graph = exec->graph] {  // may outlive exec
    for (const NodeRef& node : graph->nodes) {
      node->done = false;
      release(node.get());
    }
    demand(graph->end);
  });
}

cudaError_t cudaGetLastError() { return take_last_error(); }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "an error of the stand-in";
}
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorOfTheStandIn"; }

/// As many as anybody asks for: they differ by name only.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 64;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(i + device);
  properties->pciBusID = device;
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->warpSize = 32;
  return cudaSuccess;
}
}
