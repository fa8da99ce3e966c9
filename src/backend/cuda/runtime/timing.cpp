// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/timing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "backend/cuda/runtime/check.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/random.hpp"

namespace convoy::cuda {

Scratch::Scratch(Queue& queue, Index bytes) : queue_(queue) {
  const cudaError_t error = cudaMalloc(&memory_, static_cast<std::size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(Exit::device,
         "GPU memory is out: measuring needs {:.0f} MiB temporarily; take --tuning rule or lower --batch-size",
         static_cast<double>(bytes) / 1048576);
  }
  check(error, "allocating GPU memory");
  queue.clear(memory_, bytes);
}

Scratch::~Scratch() {
  // Errors have been reported where they happened.
  cudaStreamSynchronize(queue_.stream());
  cudaFree(memory_);
}

namespace {

/// Work that was captured once, to be launched again.
class Graph {
 public:
  Graph(Queue& queue, FunctionRef body) : stream_(queue.stream()), graph_(queue.capture(body)) {}
  ~Graph() { cudaGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() const { check(cudaGraphLaunch(graph_, stream_), "launching a measurement"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_;
};

/// How many runs make a graph long enough for the device's clock.
int runs_in_graph(Queue& queue, const std::function<void(int run)>& body) {
  constexpr double wanted_seconds = 200e-6;
  constexpr int most = 20;
  body(0);  // libraries load their kernels
  queue.wait(queue.record());
  const Instant begin = real_clock().now();
  body(1);
  queue.wait(queue.record());
  return std::clamp(static_cast<int>(wanted_seconds / std::max(seconds_since(begin), 1e-9)), 1, most);
}

}  // namespace

void fill_with_noise(Queue& queue, std::byte* at, Index bytes, Precision precision) {
  // The sign and the mantissa are random, the exponent is that of 0.5.
  std::uint32_t keep = 0x807fffffU, exponent = 0x3f000000U;
  if (precision == Precision::fp16) keep = 0x83ff83ffU, exponent = 0x38003800U;
  if (precision == Precision::bf16) keep = 0x807f807fU, exponent = 0x3f003f00U;
  std::vector<std::uint32_t> words(static_cast<std::size_t>(std::min<Index>(bytes, Index{1} << 20)) / 4);
  Random random(1, convoy::Stream::synthetic);
  for (std::uint32_t& word : words) word = (static_cast<std::uint32_t>(random.bits()) & keep) | exponent;
  const auto piece = static_cast<Index>(words.size() * 4);
  queue.upload_now(at, words.data(), piece);
  for (Index done = piece; done < bytes; done += piece)
    check(cudaMemcpyAsync(at + done, at, static_cast<std::size_t>(std::min(piece, bytes - done)),
                          cudaMemcpyDeviceToDevice, queue.stream()),
          "a copy of noise");
}

double seconds_of(Queue& queue, const std::function<void(int run)>& body) {
  const int runs = runs_in_graph(queue, body);
  const auto repeat = [&] {
    for (int i = 0; i < runs; ++i) body(i);
  };
  const Graph graph(queue, repeat);
  graph.launch();
  std::array<double, 5> seconds{};
  PartTimer timer(1);
  for (double& each : seconds) {
    timer.begin(0, queue.stream());
    graph.launch();
    timer.end(0, queue.stream());
    queue.wait(queue.record());
    each = timer.seconds()[0] / runs;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

PartTimer::PartTimer(std::size_t parts) : parts_(parts) {
  for (Part& part : parts_)
    for (cudaEvent_t* const event : {&part.begin, &part.end})
      check(cudaEventCreateWithFlags(event, cudaEventDefault), "an event for a profile");
}

PartTimer::~PartTimer() {
  for (const Part& part : parts_) {
    cudaEventDestroy(part.begin);
    cudaEventDestroy(part.end);
  }
}

void PartTimer::begin(std::size_t part, cudaStream_t stream) {
  check(cudaEventRecord(parts_[part].begin, stream), "the begin of a part of a step");
}

void PartTimer::end(std::size_t part, cudaStream_t stream) {
  check(cudaEventRecord(parts_[part].end, stream), "the end of a part of a step");
  parts_[part].ran = true;
}

std::vector<double> PartTimer::seconds() const {
  std::vector<double> result;
  for (const Part& part : parts_) {
    float milliseconds = 0;
    if (part.ran) check(cudaEventElapsedTime(&milliseconds, part.begin, part.end), "the time of a part of a step");
    result.push_back(static_cast<double>(milliseconds) * 1e-3);
  }
  return result;
}

}  // namespace convoy::cuda
