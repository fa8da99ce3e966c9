// SPDX-License-Identifier: Apache-2.0
#include "support/host_cuda/streams.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

namespace convoy {
__attribute__((weak)) long count_allocations();
}

namespace host_cuda {
namespace {

Node* running = nullptr;
int captures = 0, depth = 0;
cudaError_t last_error = cudaSuccess;

long allocations_so_far() { return convoy::count_allocations != nullptr ? convoy::count_allocations() : 0; }

void stream_fiber() {
  for (landed();;) {
    Node& node = *running;
    acquire(&node);
    for (const NodeRef& before : node.after) acquire(before.get());
    if (node.run) node.run();
    release(&node);
    go(*node.from);
  }
}

void execute(Node& node) {
  Node* const outer = std::exchange(running, &node);
  Pool* const pool = use_pool(node.pool);
  node.from = current_fiber();
  go(node.pool->self);
  running = outer;
  use_pool(pool);
  node.done = true;
  if (node.captured) return;
  // The thread sanitizer would see the host free what a stream has read.
  static auto& kept = *new std::vector<NodeRef>;
  if (watches_threads()) kept.insert(kept.end(), node.after.begin(), node.after.end());
  node.after.clear();
}

void leave_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* stream : streams()) {
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->last = std::exchange(stream->outside, nullptr);
  }
}

std::vector<cudaStream_t>& unused() {
  static auto& all = *new std::vector<cudaStream_t>;
  return all;
}

/// Whether every node leads to `end`.
bool all_joined(const Capture& capture, const NodeRef& end) {
  std::vector<Node*> joined, todo{end.get()};
  while (!todo.empty()) {
    Node* const node = todo.back();
    todo.pop_back();
    if (node == nullptr || std::find(joined.begin(), joined.end(), node) != joined.end()) continue;
    joined.push_back(node);
    for (const NodeRef& before : node->after) todo.push_back(before.get());
  }
  return joined.size() == capture.nodes.size();
}

}  // namespace

Settings& settings() {
  static Settings settings;
  return settings;
}
Counts& counts() {
  static Counts counts;
  return counts;
}

Inside::Inside() : before_(depth++ == 0 ? allocations_so_far() : -1) {}
Inside::~Inside() {
  --depth;
  if (before_ >= 0) counts().own_allocations += allocations_so_far() - before_;
}

void fail(const char* what) {
  std::fprintf(stderr, "host_cuda: %s (block %u,%u thread %u,%u)\n", what, blockIdx.x, blockIdx.y, threadIdx.x,
               threadIdx.y);
  std::abort();
}

std::vector<cudaStream_t>& streams() {
  static auto& all = *new std::vector<cudaStream_t>;
  return all;
}

/// Streams that were destroyed are used again: their fibers are many mappings, of which a process has a limited number.
cudaStream_t make_stream() {
  if (!unused().empty()) {
    streams().push_back(unused().back());
    unused().pop_back();
    return streams().back();
  }
  auto* const stream = new CUstream_st;
  streams().push_back(stream);
  for (Pool* pool : {&stream->own, &stream->inner}) make_fiber(pool->self, 262144, stream_fiber);
  return stream;
}

bool& others_go_ahead() {
  static bool others = false;
  return others;
}

void demand(const NodeRef& node) {
  static std::minstd_rand random(settings().seed);
  if (!node) return;
  const OpenMemory open;
  std::vector<Node*> stack{node.get()}, todo;
  for (; !stack.empty(); todo.clear()) {
    Node* const top = stack.back();
    if (!top->done) {
      for (const NodeRef& before : top->after)
        if (!before->done) todo.push_back(before.get());
    }
    if (todo.empty()) {
      if (!top->done) execute(*top);
      stack.pop_back();
      continue;
    }
    if (others_go_ahead()) {
      const bool is_first = top->pool == &streams().front()->own || top->pool == &streams().front()->inner;
      stack.push_back(is_first ? todo.back() : todo.front());
      continue;
    }
    const Order order = settings().order;
    stack.push_back(order == Order::reverse ? todo.back()
                                            : todo[order == Order::shuffled ? random() % todo.size() : 0]);
  }
  acquire(node.get());
  if (running == nullptr) note_host_waited(*node);
}

void end_stream(cudaStream_t stream) {
  if (stream->capture) {
    --captures;
    leave_capture(stream->capture);
  }
  demand(stream->last);
  stream->last = nullptr;
  streams().erase(std::find(streams().begin(), streams().end(), stream));
  unused().push_back(stream);
}

void demand_all() {
  for (CUstream_st* stream : streams()) demand(stream->last);
}

NodeRef add(cudaStream_t stream, std::function<void()> run, NodeRef also) {
  if (stream == nullptr) fail("the default stream is not used here");
  auto node = std::make_shared<Node>();
  node->run = std::move(run);
  node->captured = stream->capture != nullptr;
  node->pool = node->captured ? &stream->inner : &stream->own;
  if (stream->last) node->after.push_back(stream->last);
  if (also) node->after.push_back(std::move(also));
  node->number = note_queued(node->after, node->run != nullptr);
  stream->last = node;
  release(node.get());
  if (node->captured) {
    stream->capture->nodes.push_back(node);
  } else if (settings().order == Order::eager) {
    demand(node);
  }
  return node;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const Inside inside;
  add(stream, std::move(work));
  return cudaSuccess;
}

cudaError_t check_launch(dim3 grid, dim3 block, std::size_t shared_bytes) {
  if (const cudaError_t error = called(); error != cudaSuccess) return error;
  ++counts().kernels;
  const bool good = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y < 65536 && grid.z < 65536 && block.x > 0 &&
                    block.y > 0 && block.z > 0 && block.z <= 64 && block.x * block.y * block.z <= block_threads &&
                    shared_bytes <= shared_limit;
  return good ? cudaSuccess : note_error(cudaErrorInvalidConfiguration);
}

bool any_capture() { return captures > 0; }

cudaError_t begin_capture(cudaStream_t stream) {
  if (stream->capture) return note_error(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>(Capture{stream, {}, {}});
  stream->outside = std::exchange(stream->last, nullptr);
  ++captures;
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return note_error(cudaErrorStreamCaptureUnmatched);
  --captures;
  const NodeRef end = stream->last;
  leave_capture(capture);
  *graph = nullptr;
  auto kept = std::exchange(capture->kept, {});
  if (!all_joined(*capture, end)) return note_error(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{capture->nodes, end, std::move(kept)};
  return cudaSuccess;
}

long& unready_queries() {
  static long queries = 0;
  return queries;
}

bool keep_with_graph(cudaStream_t stream, std::shared_ptr<void> object) {
  if (!stream->capture) return false;
  stream->capture->kept.push_back(std::move(object));
  return true;
}

void abandon_captures() {
  captures = 0;
  for (CUstream_st* stream : streams())
    if (const std::shared_ptr<Capture> capture = stream->capture) leave_capture(capture);
}

void abandon_all() {
  abandon_captures();
  for (CUstream_st* stream : streams()) {
    stream->last = nullptr;
    unused().push_back(stream);
  }
  streams().clear();
  free_everything();
}

cudaError_t called() { return counts().calls++ == settings().fail_call ? note_error(settings().error) : cudaSuccess; }
cudaError_t note_error(cudaError_t error) { return last_error = error; }

cudaError_t take_last_error() { return std::exchange(last_error, cudaSuccess); }

}  // namespace host_cuda
