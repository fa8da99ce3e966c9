// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/timing.hpp"

#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {

Scratch::Scratch(Queue& queue, Index bytes) : queue_(queue) {
  const cudaError_t error = cudaMalloc(&memory_, static_cast<std::size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(Exit::device,
         "GPU memory is out: measuring needs {:.0f} MiB for its time; take --tuning rule or lower --batch-size",
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
